"""A checkpoint in place of a typed head: believed as far as the judge's policy says."""

from dataclasses import replace

import pytest

from tracing.small import Federation, federation
from transparency.logs import key
from zktrace.court import Judgement, Policy, judge
from zktrace.errors import EvidenceRejected, InputError
from zktrace.primitives import merkle
from zktrace.registry.log import Head
from zktrace.registry.records import DispatchRecord
from zktrace.tracing import Case
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import Kind, Signer
from zktrace.transparency.note import Note

LOG = key(Kind.NOTE)
W = [key(Kind.COSIGNATURE, name=f"w{number}", number=number) for number in (41, 42, 43)]
POLICY = Policy(
    min_length=64,
    logs=(LOG.verifier.to_text(),),
    witnesses=tuple(each.verifier.to_text() for each in W),
    min_witnesses=2,
)


@pytest.fixture(scope="module")
def own() -> Federation:
    made = federation()
    made.registry.add(DispatchRecord(station="station-2", release="r1", copy=bytes(32)))
    return made


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    found = own.trace((2,))
    own.trace((3,))
    return found


def head_at(own: Federation, size: int) -> Head:
    return Head.of_leaves([merkle.leaf_hash(each.to_bytes()) for each in own.registry.entries()[:size]])


def note(head: Head, *signers: Signer, log: Signer = LOG, at: int = 1_800_000_000) -> bytes:
    text = LogCheckpoint(origin=log.name, size=head.size, root=head.root).to_text()
    return Note(text=text, signatures=tuple(each.sign(text, at=at) for each in (log, *signers))).to_bytes()


def judged(case: Case, *notes: bytes, policy: Policy = POLICY, **given: object) -> Judgement:
    return judge(case.evidence.to_bytes(), checkpoints=notes, policy=policy, **given)  # type: ignore[arg-type]


def rejected(case: Case, *checkpoints: bytes, **given: object) -> EvidenceRejected:
    with pytest.raises(EvidenceRejected) as caught:
        judged(case, *checkpoints, **given)  # type: ignore[arg-type]
    return caught.value


def test_a_cosigned_checkpoint_stands_for_a_head(case: Case) -> None:
    theirs = Head.from_text(case.evidence.head)
    found = judged(case, note(theirs, *W[:2]))
    assert found.named == ("station-2",)
    typed = judge(case.evidence.to_bytes(), head=theirs, policy=Policy(min_length=64))
    assert (found.verdict, found.bound, found.total) == (typed.verdict, typed.bound, typed.total)
    said = found.steps[1].checked
    assert said[0] == (
        f"a checkpoint of 'log.example/north' at {theirs.size}, "
        "cosigned by 'w41' (2027-01-15T08:00:00Z) and 'w42' (2027-01-15T08:00:00Z)"
    )
    assert said[1:] == typed.steps[1].checked


def test_too_few_witnesses_or_none_are_a_rejection(case: Case) -> None:
    theirs = Head.from_text(case.evidence.head)
    for signers in ((), W[:1], (W[0], key(Kind.COSIGNATURE, name="w42", number=99))):
        found = rejected(case, note(theirs, *signers))
        assert (found.step, "2 are needed" in found.reason) == (2, True)
    stranger = key(Kind.NOTE, number=50)
    assert "no trusted key" in rejected(case, note(theirs, *W, log=stranger)).reason
    late = rejected(case, head=theirs)
    assert (late.step, "asks for 2 witnesses" in late.reason) == (8, True)


def test_what_is_missing_or_unreadable_is_no_rejection(case: Case) -> None:
    theirs = Head.from_text(case.evidence.head)
    whole = note(theirs, *W)
    with pytest.raises(InputError, match="needs a head"):
        judged(case)
    with pytest.raises(InputError, match="both were given"):
        judged(case, whole, before=theirs, before_checkpoint=whole)
    with pytest.raises(InputError, match="any checkpoint would do"):
        judged(case, whole, policy=Policy(min_length=64))
    with pytest.raises(InputError, match="a note"):
        judged(case, b"zkt-head-v1:1:" + bytes(64))
    huge = Head(size=1 << 41, root=bytes(32))
    with pytest.raises(InputError, match="more entries than any registry"):
        judged(case, note(huge, *W))


def test_a_fork_is_told(own: Federation, case: Case) -> None:
    """Two cosigned heads of one size, two histories, two logs: whoever brought them."""
    theirs, newer = Head.from_text(case.evidence.head), own.registry.head()
    lie, longer = replace(theirs, root=bytes(32)), replace(newer, root=bytes(32))
    proof = own.registry.prove_extends(theirs)
    honest = note(theirs, *W)
    found = rejected(case, honest, note(lie, *W))
    assert (found.step, "a fork" in found.reason, "two faces" in found.reason) == (2, True, True)
    assert "two logs" in rejected(case, note(lie, *W)).reason  # against the evidence itself
    assert rejected(case, honest, note(longer, *W), extensions=[proof]).step == 2  # inconsistent growth
    other = key(Kind.NOTE, name="log.example/south", number=60)
    both = replace(POLICY, logs=(*POLICY.logs, other.verifier.to_text()))
    assert "of 2 logs" in rejected(case, honest, note(theirs, *W, log=other), policy=both).reason
    early = rejected(case, honest, before_checkpoint=note(lie, *W))
    assert "a fork" in early.reason


def test_further_checkpoints_are_linked_or_listed(own: Federation, case: Case) -> None:
    theirs, newer, older = Head.from_text(case.evidence.head), own.registry.head(), head_at(own, 5)
    export = [each.to_bytes() for each in own.registry.entries()]
    proof = own.registry.prove_extends(theirs)
    grown = judged(case, note(theirs, *W), note(newer, *W), extensions=[proof])
    assert any("has the evidence's head" in fact for fact in grown.steps[1].checked)
    unlinked = judged(case, note(theirs, *W), note(older, *W))
    left = unlinked.steps[1].unchecked
    assert any("the checkpoint of 5 entries is of the log" in fact for fact in left)
    linked = judged(case, note(theirs, *W), note(older, *W), export=export)
    assert any("the checkpoint of 5 entries is of the same log" in fact for fact in linked.steps[1].checked)
    assert not any("the checkpoint of 5" in fact for fact in linked.unchecked)
    typed = judged(case, note(older, *W), head=theirs, export=export)
    assert typed.named == ("station-2",)


def test_an_earlier_checkpoint_says_when(own: Federation, case: Case) -> None:
    theirs, before = Head.from_text(case.evidence.head), head_at(own, case.evidence.entries[-2].index)
    export = [each.to_bytes() for each in own.registry.entries()]
    early = note(before, *W[:2], at=1_700_000_000)
    found = judged(case, note(theirs, *W), before_checkpoint=early, export=export)
    assert any("(2023-11-14T22:13:20Z)" in fact for fact in found.steps[1].checked)
    assert not any("no earlier head" in fact for fact in found.unchecked)
    assert "2 are needed" in rejected(case, note(theirs, *W), before_checkpoint=note(before, W[0])).reason


@pytest.mark.parametrize(
    "text",
    [
        "min_witnesses = 1",
        "min_witnesses = true",
        "min_witnesses = -1",
        'witnesses = ["w"]',
        f'witnesses = ["{LOG.verifier.to_text()}"]\nmin_witnesses = 1',
        f'witnesses = ["{W[0].verifier.to_text()}", "{W[0].verifier.to_text()}"]\nmin_witnesses = 1',
        f'logs = "{LOG.verifier.to_text()}"',
    ],
)
def test_policies_that_cannot_be(text: str) -> None:
    with pytest.raises(InputError, match="policy"):
        Policy.from_toml(text.encode())
