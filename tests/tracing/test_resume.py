"""An investigation that was interrupted between payment and verdict is carried to its end, and paid once."""

from fractions import Fraction
from typing import Any

import pytest

from tracing.small import SUSPECT, Federation, federation
from zktrace.errors import Refused
from zktrace.registry.records import VerdictRecord
from zktrace.tracing import begun, resume, trace

BUDGET = Fraction(1, 1000)


def arguments(made: Federation, rows: list[int]) -> dict[str, Any]:
    readouts = [made.readout("weight", made.copy_readout("weight", rows))]
    return {"suspect": SUSPECT, "readouts": readouts, "requests": made.requests.get}


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Federation:
    """A federation whose one investigation ended just before its verdict."""
    made = federation()
    add = made.registry.add

    def dies(source: Any) -> int:
        if isinstance(source, VerdictRecord):
            raise KeyboardInterrupt
        return add(source)

    with monkeypatch.context() as patched:
        patched.setattr(made.registry, "add", dies)
        with pytest.raises(KeyboardInterrupt):
            trace(made.registry, made.custody, release="r1", budget=BUDGET, **arguments(made, [2]))
    return made


def test_the_verdict_is_the_one_that_the_first_attempt_would_have_come_to(interrupted: Federation) -> None:
    ledger = interrupted.registry.ledger()
    (place,) = ledger.investigations
    assert not ledger.verdicts
    case = resume(interrupted.registry, interrupted.custody, place=place, **arguments(interrupted, [2]))
    whole = federation().trace([2])
    assert case.names == whole.names == ("station-2",)
    assert case.evidence.findings == whole.evidence.findings
    now = interrupted.registry.ledger()
    assert now.spent == BUDGET
    assert list(now.investigations) == [place]
    again = resume(interrupted.registry, interrupted.custody, place=place, **arguments(interrupted, [2]))
    assert again.evidence.findings == case.evidence.findings
    assert interrupted.registry.ledger().size == now.size


def test_a_second_attempt_is_refused_where_the_first_was_paid_for(interrupted: Federation) -> None:
    before = interrupted.registry.ledger()
    (place,) = before.investigations
    assert begun(before, SUSPECT, "r1", place) == place
    assert begun(before, SUSPECT, "r1", place + 1) is None
    assert begun(before, bytes(32), "r1", 0) is None
    with pytest.raises(Refused, match=f"entry {place} investigates this suspect already"):
        trace(
            interrupted.registry,
            interrupted.custody,
            release="r1",
            budget=BUDGET,
            once_after=place,
            **arguments(interrupted, [2]),
        )
    assert interrupted.registry.ledger().size == before.size


def test_another_suspect_or_another_reading_is_refused(interrupted: Federation) -> None:
    (place,) = interrupted.registry.ledger().investigations
    given = arguments(interrupted, [2])
    with pytest.raises(Refused, match="this suspect is"):
        resume(interrupted.registry, interrupted.custody, place=place, **given | {"suspect": bytes(32)})
    with pytest.raises(Refused, match="is no investigation"):
        resume(interrupted.registry, interrupted.custody, place=place - 1, **given)
