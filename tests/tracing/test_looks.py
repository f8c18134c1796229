"""Every way to read a suspect is declared beforehand and pays its share; the first that certifies ends it."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from support import unchecked
from tracing.small import SUSPECT, Federation, federation
from zktrace.carriers import ALIGNMENTS, Look, planned
from zktrace.certificates.adjudicate import Verdict
from zktrace.errors import InputError, MalformedFile
from zktrace.readouts.readout import Attempt, Readout
from zktrace.registry.records import InvestigationRecord
from zktrace.report.words import explain
from zktrace.tracing import Case, trace

BUDGET = Fraction(1, 1000)


def noise(own: Federation, carrier: str, seed: int = 5) -> Readout:
    return own.readout(carrier, np.random.default_rng(seed).standard_normal(192))


def marked(own: Federation, carrier: str, row: int) -> Readout:
    return own.readout(carrier, own.copy_readout(carrier, (row,)))


def attempt(carrier: str, alignment: str, read: Callable[[], Readout]) -> Attempt:
    return Attempt(carrier=carrier, alignment=alignment, read=read)


def investigate(
    own: Federation, readouts: list[Readout], further: list[Attempt], budget: Fraction = BUDGET
) -> Case:
    return trace(
        own.registry,
        own.custody,
        suspect=SUSPECT,
        release="r1",
        readouts=readouts,
        further=further,
        budget=budget,
        requests=own.requests.get,
    )


@pytest.fixture
def own() -> Federation:
    return federation(carriers=("weight", "feature"), length=192)


def never() -> Readout:
    raise AssertionError("an alignment was tried that was not needed")


# ── the plan ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_split_is_fixed_and_adds_up_to_the_budget() -> None:
    for carriers in ((), ("weight",), ("weight", "feature"), ("weight", "feature", "output")):
        for count in range(4):
            aligned = [("channels", "weight"), ("procrustes", "feature"), ("ridge", "feature")][:count]
            looks = planned(carriers, aligned)
            if not looks:
                continue
            assert sum(each.share for each in looks) == 1
            if carriers and aligned:
                assert looks[0].share == Fraction(19, 20)
                assert {each.share for each in looks[1:]} == {Fraction(1, 20 * count)}


def test_what_may_be_faint_shares_with_the_suspect_as_it_is() -> None:
    """An embedding is given a head: what a student kept of a mark is faint in either reading."""
    looks = planned(("weight", "output"), [("channels", "weight"), ("head", "output")])
    shares = [each.share for each in looks]
    assert shares == [Fraction(19, 40), Fraction(1, 20), Fraction(19, 40)]
    assert [each.share for each in planned(("output",), [("head", "output")])] == [Fraction(1, 2)] * 2
    assert [each.share for each in planned((), [("head", "output")])] == [Fraction(1)]


def test_a_plan_that_overspends_or_misses_a_carrier_is_no_record() -> None:
    good = InvestigationRecord(
        suspect=SUSPECT,
        release="r1",
        carriers=("weight", "feature"),
        rule="certified",
        budget=BUDGET,
        recipients=3,
        looks=planned(("weight", "feature"), [("channels", "weight")]),
    )
    assert InvestigationRecord.from_json(good.as_json()) == good
    half = Fraction(1, 2)
    fine = Look(alignment="identity", carriers=("weight", "feature"), share=half)
    wrong: list[list[Look]] = [
        [],
        [Look(alignment="identity", carriers=("weight",), share=half)],
        [Look(alignment="identity", carriers=("weight", "feature"), share=2 * half)] * 2,
        [
            Look(alignment="identity", carriers=("weight", "feature"), share=2 * half),
            Look(alignment="ridge", carriers=("feature",), share=Fraction(1, 10**9)),
        ],
        [Look(alignment="identity", carriers=("weight", "feature", "output"), share=half)],
        [unchecked(fine, alignment="channels")],
        [unchecked(fine, share=Fraction(0))],
        [unchecked(fine, share=-half)],
        [Look(alignment="identity", carriers=("weight", "feature"), share=half / 8)] * 2,
        [unchecked(fine, alignment="rotation")],
    ]
    for looks in wrong:
        body = good.as_json() | {"looks": [each.as_json() for each in looks]}
        with pytest.raises(MalformedFile):
            InvestigationRecord.from_json(body)
    assert set(ALIGNMENTS) == {"identity", "channels", "rotated", "folded", "procrustes", "ridge", "head"}


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_is_named_as_it_is_is_not_looked_at_again(own: Federation) -> None:
    case = investigate(own, [marked(own, "weight", 2)], [attempt("weight", "channels", never)])
    assert case.names == ("station-2",)
    assert case.look.alignment == "identity"
    assert len(case.evidence.findings.looks) == 1
    assert own.registry.ledger().spent == BUDGET  # all of it: it was declared


def test_a_disguise_is_seen_through_at_its_own_share(own: Federation) -> None:
    seen: list[object] = []

    def read() -> Readout:
        seen.append(own.registry.entries()[-1].record)
        return marked(own, "weight", 4)

    further = [
        attempt("weight", "channels", read),
        attempt("feature", "procrustes", never),
        attempt("feature", "ridge", never),
    ]
    case = investigate(own, [noise(own, "weight"), noise(own, "feature", 6)], further)
    assert case.names == ("station-4",)
    assert case.verdict == Verdict.ATTRIBUTE
    assert case.look == Look(alignment="channels", carriers=("weight",), share=Fraction(1, 60))
    (record,) = seen
    assert isinstance(
        record, InvestigationRecord
    )  # the plan was there before this look, and before the first
    assert [each.share for each in record.looks] == [Fraction(19, 20)] + 3 * [Fraction(1, 60)]
    # 1/60 of the budget, three quarters for the first stage, half of that a score, nine tenths a tail
    assert case.named[0].bound == BUDGET / 60 * Fraction(3, 4) / 2 * Fraction(9, 10)
    assert [each.carrier for each in case.evidence.carriers] == ["weight"]
    text = explain(case)
    assert "weight carrier aligned by channels" in text
    assert "weight+feature identity 19/20, weight channels 1/60" in text


def test_what_cannot_be_aligned_is_said_and_the_next_is_tried(own: Federation) -> None:
    def broken() -> Readout:
        raise InputError("the suspect has other channels")

    further = [
        attempt("weight", "channels", broken),
        attempt("feature", "procrustes", lambda: noise(own, "feature", 7)),
        attempt("feature", "ridge", lambda: marked(own, "feature", 1)),
    ]
    case = investigate(own, [noise(own, "weight")], further)
    assert case.names == ("station-1",)
    assert case.failed == (("channels", "the suspect has other channels"),)
    assert [len(each.carriers) for each in case.evidence.findings.looks] == [1, 0, 1, 1]
    assert "the suspect has other channels" in explain(case)


def test_nothing_is_found_in_all_looks(own: Federation) -> None:
    further = [attempt("weight", "channels", lambda: noise(own, "weight", 8))]
    case = investigate(own, [noise(own, "weight")], further)
    assert case.verdict == Verdict.NOTHING
    assert len(case.evidence.findings.looks) == 2
    assert case.look.alignment == "identity"


def test_a_suspect_that_only_an_alignment_can_read(own: Federation) -> None:
    """Another number of features: nothing to read as it is."""
    case = investigate(own, [], [attempt("feature", "ridge", lambda: marked(own, "feature", 0))])
    assert case.names == ("station-0",)
    assert case.investigation.looks == (Look(alignment="ridge", carriers=("feature",), share=Fraction(1)),)

    def broken() -> Readout:
        raise InputError("no")

    case = investigate(own, [], [attempt("feature", "ridge", broken)])
    assert case.verdict == Verdict.NOTHING
    assert "nothing could be read" in explain(case)


def test_a_lead_through_an_alignment_accuses_nobody(own: Federation) -> None:
    further = [attempt("weight", "channels", lambda: marked(own, "weight", 3))]
    case = investigate(own, [noise(own, "weight")], further, budget=Fraction(0))
    assert case.verdict == Verdict.LEAD
    assert case.leads[0].station == "station-3"
    assert case.evidence.findings.stations == ()


def test_an_alignment_of_another_carrier_is_refused_before_it_costs_anything(own: Federation) -> None:
    for carrier, alignment in (("weight", "ridge"), ("output", "channels"), ("feature", "turn")):
        with pytest.raises(InputError):
            investigate(own, [noise(own, "weight")], [attempt(carrier, alignment, never)])
    assert own.registry.ledger().spent == 0


@pytest.mark.parametrize("seed", range(20))
def test_innocents_are_not_named_by_many_looks_at_noise(seed: int) -> None:
    own = federation(carriers=("weight", "feature"), length=192, seed=f"key {seed}")
    further = [
        attempt("weight", "channels", lambda: noise(own, "weight", 100 + seed)),
        attempt("feature", "procrustes", lambda: noise(own, "feature", 200 + seed)),
        attempt("feature", "ridge", lambda: noise(own, "feature", 300 + seed)),
    ]
    readouts = [noise(own, "weight", seed), noise(own, "feature", 50 + seed)]
    assert investigate(own, readouts, further).named == ()
