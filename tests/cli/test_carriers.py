"""The option --carrier knows every carrier of the table."""

from zktrace.carriers import NAMES
from zktrace.cli.carriers import CarrierChoice


def test_every_carrier_can_be_chosen() -> None:
    assert {each.value for each in CarrierChoice} == {*NAMES, "both", "all"}
    assert [CarrierChoice(name).names for name in NAMES] == [(name,) for name in NAMES]
    assert CarrierChoice.BOTH.names == ("weight", "feature")
    assert CarrierChoice.ALL.names == NAMES
