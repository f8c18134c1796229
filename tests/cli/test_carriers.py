"""The option --carrier knows every carrier of the table."""

from zktrace.carriers import NAMES
from zktrace.cli.carriers import DEFAULT_CARRIER, carrier_choice, carriers_of


def test_every_carrier_can_be_chosen() -> None:
    assert tuple(carrier_choice().choices) == (*NAMES, "both", "all")
    assert [carriers_of(name) for name in NAMES] == [(name,) for name in NAMES]
    assert carriers_of("both") == ("weight", "feature")
    assert carriers_of("all") == tuple(NAMES)
    assert DEFAULT_CARRIER == "weight"
