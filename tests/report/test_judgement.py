"""The page of a judgement: hostile text stays text, and what was not reached says so."""

from fractions import Fraction

from zktrace.court import STEPS, Judgement, Policy, Step, Total
from zktrace.errors import EvidenceRejected
from zktrace.report.judgement import NOTHING_LEFT, Hearing, judgement_html

HOSTILE = "<script>alert(1)</script>"


def steps(unchecked: str | None = None) -> tuple[Step, ...]:
    left = () if unchecked is None else (unchecked,)
    return tuple(
        Step(number=number, title=title, checked=(f"fact {number}",), unchecked=left)
        for number, title in STEPS.items()
    )


def hearing(outcome: Judgement | EvidenceRejected, *, unchecked: str | None = None) -> Hearing:
    return Hearing(
        at="2026-01-31 12:00:00 UTC",
        evidence=(HOSTILE, "00" * 32),
        head="zkt-head-v1:1:" + "00" * 32,
        before=None,
        given=(("suspect", HOSTILE),),
        policy=Policy(),
        outcome=outcome,
        steps=steps(unchecked),
        reached=outcome.step if isinstance(outcome, EvidenceRejected) else 9,
        versions=(("zktrace", "0"),),
    )


def judgement(named: tuple[str, ...] = ("bravo",)) -> Judgement:
    return Judgement(
        verdict="certified-attribute" if named else "no-certified-evidence",
        named=named,
        suspect=bytes(32),
        release="r1",
        budget=Fraction(1, 1000),
        total=Total(upto=Fraction(1, 100), whole=Fraction(1, 50), recounted=True),
        recipients=7,
        steps=steps(),
    )


def test_hostile_text_stays_text() -> None:
    rejected = EvidenceRejected(step=4, title="setup", reason=HOSTILE)
    for outcome in (judgement((HOSTILE,)), rejected):
        page = judgement_html(hearing(outcome, unchecked=HOSTILE))
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_what_is_proved_is_said_of_this_investigation_and_of_all() -> None:
    page = judgement_html(hearing(judgement()))
    assert "at most 1/1000 for this investigation and 1/100 for all of the log up to it" in page
    assert NOTHING_LEFT in page
    assert "Nobody is accused." in judgement_html(hearing(judgement(())))


def test_a_rejection_ends_the_steps() -> None:
    page = judgement_html(hearing(EvidenceRejected(step=7, title="certificates", reason="too low")))
    assert page.count("Not reached.") == 2
    assert "Rejected at step 7, certificates." in page
