"""Numbers as people write them."""

from fractions import Fraction

import pytest

from zktrace.errors import InputError
from zktrace.primitives.exact import exact_budget, exact_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.01", Fraction(1, 100)),
        ("1e-3", Fraction(1, 1000)),
        ("1E-3", Fraction(1, 1000)),
        ("1/100", Fraction(1, 100)),
        ("2", Fraction(2)),
        ("1e-30", Fraction(1, 10**30)),
    ],
)
def test_a_number_is_exactly_what_it_says(text: str, number: Fraction) -> None:
    assert exact_number(text) == exact_budget(text) == number


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "inf", "1/0", "1e-31", "1e999999999", "1e", "0." + "0" * 40]
)
def test_what_is_no_number_or_a_huge_one_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a number such as"):
        exact_number(text)
    with pytest.raises(InputError, match="a budget is a number such as"):
        exact_budget(text)
