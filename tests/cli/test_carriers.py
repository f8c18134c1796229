"""The option --carrier knows every carrier of the table."""

import pytest

from zktrace.carriers import NAMES
from zktrace.cli.carriers import carrier_choice, carriers_of, default_carrier
from zktrace.errors import InputError


def test_every_carrier_can_be_chosen() -> None:
    assert tuple(carrier_choice().choices) == (*NAMES, "both", "all")
    assert [carriers_of(name) for name in NAMES] == [(name,) for name in NAMES]
    assert carriers_of("both") == ("weight", "feature")
    assert carriers_of("all") == tuple(NAMES)


def test_by_default_copies_carry_in_all_their_weights() -> None:
    """The paper has no such carrier: its copies carry in their scales."""
    assert [default_carrier(profile) for profile in ("informed", "paper")] == ["spread", "weight"]
    assert default_carrier("informed", ["output", "weight"]) == "output"
    with pytest.raises(InputError, match="no carrier of this workspace has the profile paper"):
        default_carrier("paper", ["spread"])
