"""Policy files: small, exact, and no key is ignored."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from zktrace.court import Policy
from zktrace.errors import InputError


def test_what_a_file_does_not_say_is_the_default() -> None:
    assert Policy.from_toml(b"# as usual\n") == Policy()
    assert Policy.from_toml(b"min_length = 512").max_budget == Policy().max_budget


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        "max_budget = 1e-3\nmax_total_budget = 5e-2\n"
        'rules = ["certified"]\ncarriers = ["weight"]\nmin_length = 512\n'
        "require_suspect = true\nrequire_registry = true\naccept_tamper = false\n"
        "require_readout = true\naccept_scores = false\n"
    )
    assert Policy.read(path) == Policy(
        max_total_budget=Fraction(1, 20),
        max_budget=Fraction(1, 1000),  # the number that is written, not a float near it
        rules=("certified",),
        carriers=("weight",),
        min_length=512,
        require_suspect=True,
        require_registry=True,
        accept_tamper=False,
        require_readout=True,
        accept_scores=False,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "max_budgets = 0.1",
        "max_budget = 1e-999999999",
        "max_budget = 1",
        "max_total_budget = 1.0",
        "max_total_budget = true",
        "accept_scores = 1",
        "max_budget = 0.0",
        "max_budget = nan",
        "max_budget = inf",
        'max_budget = "0.1"',
        "min_length = 0",
        "min_length = true",
        "min_length = 1.5",
        "rules = []",
        'rules = ["strict"]',
        'rules = "certified"',
        "carriers = [1]",
        "require_suspect = 1",
        "[policy]",
        "max_budget",
        "a = " + "[" * 10_000,
        "\x00",
    ],
)
def test_what_is_not_a_policy_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="policy"):
        Policy.from_toml(text.encode())


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="policy"):
        Policy.from_toml(b"\xff\xfe")


def test_the_documentation_has_the_default_and_the_strictest_policy() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text()
    default, strict = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert Policy.from_toml(default.encode()) == Policy()
    assert [line.split(" =")[0] for line in default.splitlines()] == [name for name, _ in Policy().rows()]
    found = dict(Policy.from_toml(strict.encode()).rows())
    assert {found[name] for name in found if name.startswith("require_")} == {"true"}
    assert {found[name] for name in found if name.startswith("accept_")} == {"false"}
    assert Policy.from_toml(strict.encode()).max_total_budget == Fraction(1, 100)
