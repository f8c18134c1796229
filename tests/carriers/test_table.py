"""The table of carriers: what the other rooms rely on."""

import pytest

from zktrace.carriers import (
    ALIGNMENTS,
    CARRIERS,
    IDENTITY,
    NAMES,
    PROFILES,
    Carrier,
    add,
    carrier,
    needs_training,
    parts,
    remove,
)
from zktrace.errors import InputError
from zktrace.marking.writer import Writer
from zktrace.primitives.loading import loaded
from zktrace.readouts.reader import Reader


def test_every_carrier_is_found_by_its_name() -> None:
    assert tuple(NAMES) == ("spread", "weight", "feature", "output")
    for name in NAMES:
        assert carrier(name).name == name
    with pytest.raises(InputError, match="no carrier 'sound'; known: spread, weight, feature, output"):
        carrier("sound")


def test_alignments_and_carriers_say_the_same() -> None:
    assert ALIGNMENTS[IDENTITY] == tuple(NAMES)
    for how, able in ALIGNMENTS.items():
        if how != IDENTITY:
            found = {name: {each.name for each in carrier(name).alignments} for name in NAMES}
            assert able == tuple(name for name in NAMES if how in found[name])
    assert len(ALIGNMENTS) == 7
    with pytest.raises(KeyError):
        ALIGNMENTS["rotation"]


def test_shares_and_lengths() -> None:
    assert [parts(name) for name in NAMES] == [1, 1, 1, 8]
    found = [(each.length, each.colluders, each.law) for each in CARRIERS.values()]
    assert found == [(2048, 2, "fair"), (512, 2, "fair"), (2048, 3, "fair"), (2048, 3, "fair")]
    assert [each.name for each in CARRIERS.values() if each.beside] == ["spread"]


@pytest.mark.parametrize(
    ("names", "profile", "trained"),
    [
        (("spread",), "informed", False),
        (("spread", "weight"), "informed", False),
        (("weight",), "informed", False),
        (("weight",), "paper", True),
        (("feature",), "informed", True),
        (("weight", "output"), "informed", True),
    ],
)
def test_which_copies_are_trained(names: tuple[str, ...], profile: str, trained: bool) -> None:
    assert needs_training(names, profile) == trained
    assert profile in PROFILES


TOY = {
    "name": "toy",
    "reads": "Each is a number.",
    "reader": "nowhere:Reader",
    "writers": {"informed": "nowhere:Writer"},
    "length": 8,
    "colluders": 2,
}


def test_carriers_are_added_and_taken_out() -> None:
    add(Carrier(**TOY))  # type: ignore[arg-type]
    try:
        assert tuple(NAMES)[-1] == "toy"
        assert ALIGNMENTS[IDENTITY] == (*tuple(NAMES)[:-1], "toy")
        with pytest.raises(InputError, match="already"):
            add(Carrier(**TOY))  # type: ignore[arg-type]
    finally:
        remove("toy")
    assert "toy" not in CARRIERS
    with pytest.raises(InputError, match="table's own"):
        remove("weight")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Toy"},
        {"name": ""},
        {"length": 0},
        {"colluders": 1},
        {"parts": 0},
        {"writers": {}},
        {"writers": {"other": "a:B"}},
        {"reader": "nowhere"},
        {"network": "a:b"},
        {"probes": "x.safetensors"},
    ],
)
def test_a_wrong_entry_cannot_be_made(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Carrier(**(TOY | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_what_an_entry_names_is_there(name: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    entry = carrier(name)
    assert issubclass(loaded(entry.reader), Reader)
    assert all(issubclass(loaded(each), Writer) for each in entry.writers.values())
    assert not entry.network or callable(loaded(entry.network))


def test_what_cannot_be_loaded_is_an_error_of_ours() -> None:
    for place in ("zktrace.nowhere:Reader", "zktrace.carriers:Nothing"):
        with pytest.raises(InputError, match="no such"):
            loaded(place)
