"""Settings of marks are read from the command line, or refused in one line."""

import pytest

from zktrace.cli.options import mark_settings
from zktrace.errors import InputError


def test_settings_are_sorted_by_carrier() -> None:
    assert mark_settings(None) == {"feature": {}, "output": {}}
    found = mark_settings(["output.margin=2.5", "output.passes=24", "feature.keep=1e-1"])
    assert found == {"feature": {"keep": 0.1}, "output": {"margin": 2.5, "passes": 24}}
    assert type(found["output"]["passes"]) is int


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "output",
        "output.margin",
        "output.margin=",
        "margin=2",
        "weight.share=1",
        "output.margin=two",
        "output.margin=1e",
        "output.margin=1.2.3",
        "output.=3",
        "output.margin=2 ",
        "output.margin=nan",
    ],
)
def test_what_is_no_setting_is_refused(bad: str) -> None:
    with pytest.raises(InputError, match="--mark"):
        mark_settings([bad])


def test_a_setting_is_given_once() -> None:
    with pytest.raises(InputError, match="twice"):
        mark_settings(["output.margin=1", "output.margin=2"])
