"""The table of carriers: what the other rooms rely on."""

import pytest

from zktrace.carriers import ALIGNMENTS, CARRIERS, IDENTITY, NAMES, PROFILES, carrier, needs_training, parts
from zktrace.errors import InputError


def test_every_carrier_is_found_by_its_name() -> None:
    assert NAMES == ("weight", "feature", "output")
    for name in NAMES:
        assert carrier(name).name == name
    with pytest.raises(InputError, match="no carrier 'sound'; known: weight, feature, output"):
        carrier("sound")


def test_alignments_and_carriers_say_the_same() -> None:
    assert ALIGNMENTS[IDENTITY] == NAMES
    for how, able in ALIGNMENTS.items():
        if how != IDENTITY:
            assert able == tuple(name for name in NAMES if how in CARRIERS[name].alignments)


def test_shares_and_lengths() -> None:
    assert [parts(name) for name in NAMES] == [1, 1, 8]
    assert [(each.length, each.colluders) for each in CARRIERS.values()] == [(512, 2), (2048, 3), (2048, 3)]


@pytest.mark.parametrize(
    ("names", "profile", "trained"),
    [
        (("weight",), "informed", False),
        (("weight",), "paper", True),
        (("feature",), "informed", True),
        (("weight", "output"), "informed", True),
    ],
)
def test_which_copies_are_trained(names: tuple[str, ...], profile: str, trained: bool) -> None:
    assert needs_training(names, profile) == trained
    assert profile in PROFILES
