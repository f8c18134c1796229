"""Evidence of a disguised or merely queried suspect: what the judge makes again, and what it rejects."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from court.forge import places_of, records_of, sealed
from readouts.making import output_reader
from tracing.small import SUSPECT, Federation, federation
from zktrace.carriers import Look, planned
from zktrace.court import Policy, judge
from zktrace.errors import EvidenceRejected
from zktrace.evidence import LookClaim
from zktrace.readouts.readout import Attempt, Readout
from zktrace.readouts.scores import output_frames, scattered, scores_digest
from zktrace.registry.log import Head
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import InvestigationRecord, Layout, ReleaseRecord
from zktrace.tracing import Case, trace

EASY = Policy(min_length=64)
CLASSES, LENGTH = 4, 256


def disguised(own: Federation, *, row: int = 3) -> Case:
    """Noise as it is, a station's row once its channels are in place."""
    rng = np.random.default_rng(2)
    readouts = [own.readout(each, rng.standard_normal(192)) for each in ("weight", "feature")]
    aligned = own.readout("weight", own.copy_readout("weight", (row,)))
    return trace(
        own.registry,
        own.custody,
        suspect=SUSPECT,
        release="r1",
        readouts=readouts,
        further=[
            Attempt(carrier="weight", alignment="channels", read=lambda: aligned),
            Attempt(carrier="feature", alignment="ridge", read=lambda: readouts[1]),
        ],
        budget=Fraction(1, 1000),
        requests=own.requests.get,
    )


def mapped(*, row: int = 3) -> tuple[Federation, Case]:
    """Noise as it is, a station's row once its features are mapped."""
    own = federation(carriers=("feature",), length=192)
    noise = own.readout("feature", np.random.default_rng(2).standard_normal(192))
    found = own.readout("feature", own.copy_readout("feature", (row,)))
    case = trace(
        own.registry,
        own.custody,
        suspect=SUSPECT,
        release="r1",
        readouts=[noise],
        further=[Attempt(carrier="feature", alignment="ridge", read=lambda: found)],
        budget=Fraction(1, 1000),
        requests=own.requests.get,
    )
    assert case.names == (f"station-{row}",)
    return own, case


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation(carriers=("weight", "feature"), length=192)


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    return disguised(own)


def step_of(data: bytes, head: Head, **given: object) -> int:
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head, policy=EASY, **given)  # type: ignore[arg-type]
    return caught.value.step


def test_an_aligned_look_is_upheld_at_its_share(own: Federation, case: Case) -> None:
    found = judge(case.evidence.to_bytes(), head=Head.from_text(case.evidence.head), policy=EASY)
    assert found.named == ("station-3",)
    facts = [fact for step in found.steps for fact in step.checked]
    assert any("2 of 3 looks on record were taken, the last: weight, channels" in fact for fact in facts)
    assert any("spent 3/160000 of 1/40000" in fact for fact in facts)


def relogged(own: Federation, case: Case, looks: Sequence[Look], claims: Sequence[LookClaim]) -> int:
    log = records_of(own)[: case.verdict_place + 1]
    investigation = log[case.place]
    assert isinstance(investigation, InvestigationRecord)
    log[case.place] = replace(investigation, looks=tuple(looks))
    evidence = replace(case.evidence, findings=replace(case.evidence.findings, looks=tuple(claims)))
    data, head, _ = sealed(evidence, log, places_of(case))
    return step_of(data, head)


def test_another_plan_or_other_looks_are_rejected(own: Federation, case: Case) -> None:
    looks, claims = case.investigation.looks, case.evidence.findings.looks
    both = ("weight", "feature")
    less, more = replace(looks[0], share=Fraction(1, 2)), replace(looks[1], share=Fraction(1, 2))
    assert relogged(own, case, (less, more), claims) == 7  # a larger share: another threshold
    assert relogged(own, case, planned(both), claims) == 4  # more looks than planned
    assert relogged(own, case, planned(both, [("ridge", "feature")]), claims) == 4
    assert relogged(own, case, (looks[1], looks[0], looks[2]), claims) == 4
    assert relogged(own, case, looks, claims[1:]) == 4  # the first one is not told of
    assert relogged(own, case, looks, (LookClaim(carriers=()), claims[1])) == 4  # as it is, it can be read
    assert relogged(own, case, looks, (*claims, claims[1])) == 4  # the third is at features


def test_looks_that_were_left_out_without_a_finding_are_seen(own: Federation) -> None:
    rng = np.random.default_rng(2)
    quiet = own.readout("weight", rng.standard_normal(192))
    case = trace(
        own.registry,
        own.custody,
        suspect=SUSPECT,
        release="r1",
        readouts=[quiet],
        further=[Attempt(carrier="weight", alignment="channels", read=lambda: quiet)],
        budget=Fraction(1, 1000),
        requests=own.requests.get,
    )
    judge(case.evidence.to_bytes(), head=Head.from_text(case.evidence.head), policy=EASY)
    assert relogged(own, case, case.investigation.looks, case.evidence.findings.looks[:1]) == 4


# ── a suspect that was only queried ─────────────────────────────────────────────────────────────────────────


def queried(*, row: int = 1) -> tuple[Federation, Case, NDArray[np.float64]]:
    """A federation with the output carrier, and a case from a matrix of scores."""
    own = federation(carriers=("output",), length=LENGTH)
    seed = own.seed("output", "r2")
    reference = np.random.default_rng(4).standard_normal((LENGTH, CLASSES))
    layout = Layout(
        carrier="output",
        profile="informed",
        length=LENGTH,
        law="tardos",
        dimension=CLASSES,
        layers=(),
        deviations=b"",
        reference=readout_digest(reference.reshape(-1)),
        probes=bytes(32),
        frozen=False,
    )
    own.add_release("r2", bytes(32), (layout,))
    bits = np.unpackbits(np.frombuffer(own.row("output", row), dtype=np.uint8))[:LENGTH]
    frames = output_frames(seed, reference)
    rng = np.random.default_rng(row)
    signs = scattered(2.0 * bits - 1, frames.shape[1])
    scores = reference + 0.2 * np.einsum("ji,jik->jk", signs, frames)
    scores = 3.0 * scores + 0.1 * rng.standard_normal(scores.shape) + np.arange(CLASSES)
    reader = output_reader(seed=seed, length=LENGTH, classes=CLASSES, reference=reference.reshape(-1))
    readout = Readout(carrier="output", values=reader.read_answers(scores), reference=reader.reference)
    case = trace(
        own.registry,
        own.custody,
        suspect=scores_digest(scores),
        release="r2",
        readouts=[readout],
        budget=Fraction(1, 1000),
        requests=own.requests.get,
    )
    return own, case, scores


def test_a_readout_is_made_again_from_scores() -> None:
    own, case, scores = queried()
    assert case.names == ("station-1",)
    data, head = case.evidence.to_bytes(), own.registry.head()
    assert judge(data, head=head, policy=EASY).named == ("station-1",)
    found = judge(data, head=head, policy=EASY, scores=scores)
    assert any("256 values of the suspect read again" in fact for fact in found.steps[4].checked)
    assert any("nobody vouches" in fact for fact in found.steps[4].unchecked)
    for strict in (
        replace(EASY, require_suspect=True),
        replace(EASY, require_readout=True),
        replace(EASY, accept_scores=False),
    ):
        with pytest.raises(EvidenceRejected) as caught:
            judge(data, head=head, policy=strict, scores=scores)
        assert caught.value.step == 8
    other = scores.copy()
    other[3, 1] += 1e-9
    assert step_of(data, head, scores=other) == 5
    assert step_of(data, head, scores=scores[:-1]) == 5
    assert step_of(data, head, scores=np.full_like(scores, np.nan)) == 5


def test_scores_that_read_otherwise_are_rejected() -> None:
    """A forger's log has the digest of other scores; the readout of the file is not theirs."""
    own, case, scores = queried()
    other = scores + 0.5 * np.random.default_rng(0).standard_normal(scores.shape)
    log = records_of(own)[: case.verdict_place + 1]
    investigation = log[case.place]
    assert isinstance(investigation, InvestigationRecord)
    log[case.place] = replace(investigation, suspect=scores_digest(other))
    data, head, _ = sealed(case.evidence, log, places_of(case))
    assert step_of(data, head, scores=other) == 5
    assert step_of(data, head, scores=scores) == 5


def test_a_reference_of_another_size_is_rejected() -> None:
    own, case, _ = queried()
    opening = case.evidence.carriers[0]
    for reference in (opening.reference[: 8 * LENGTH], opening.reference * 2, b""):
        forged = replace(case.evidence, carriers=(replace(opening, reference=reference),))
        assert step_of(forged.to_bytes(), own.registry.head()) == 3
    log = records_of(own)[: case.verdict_place + 1]
    at = next(i for i, each in enumerate(log) if isinstance(each, ReleaseRecord) and each.name == "r2")
    release = log[at]
    assert isinstance(release, ReleaseRecord)
    log[at] = replace(release, layouts=(replace(release.layouts[0], dimension=CLASSES + 1),))
    data, head, _ = sealed(case.evidence, log, places_of(case))
    assert step_of(data, head) == 4
