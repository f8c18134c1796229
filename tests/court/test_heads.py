"""Evidence and a log that goes on: what links two heads, and what is said where nothing does."""

from dataclasses import replace

import pytest

from tracing.small import Federation, federation
from zktrace.court import Policy, judge
from zktrace.errors import CannotTell, EvidenceRejected
from zktrace.primitives import merkle
from zktrace.registry.log import Extension, Head
from zktrace.tracing import Case

EASY = Policy(min_length=64)


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation()


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    """A case, after which the log has grown."""
    found = own.trace((2,))
    own.trace((3,))
    return found


def head_at(own: Federation, size: int) -> Head:
    return Head.of_leaves([merkle.leaf_hash(each.to_bytes()) for each in own.registry.entries()[:size]])


def step_of(case: Case, **given: object) -> int:
    with pytest.raises(EvidenceRejected) as caught:
        judge(case.evidence.to_bytes(), policy=EASY, **given)  # type: ignore[arg-type]
    return caught.value.step


def test_a_newer_head_without_a_proof_cannot_be_told(own: Federation, case: Case) -> None:
    with pytest.raises(CannotTell, match="consistency proof") as caught:
        judge(case.evidence.to_bytes(), head=own.registry.head(), policy=EASY)
    assert caught.value.exit_code == 2
    assert case.evidence.head in str(caught.value)  # what to ask for


def test_a_consistency_proof_keeps_evidence_good(own: Federation, case: Case) -> None:
    theirs, newer = Head.from_text(case.evidence.head), own.registry.head()
    proof = own.registry.prove_extends(theirs)
    found = judge(case.evidence.to_bytes(), head=newer, policy=EASY, extensions=[proof])
    assert found.named == ("station-2",)
    assert any("by a consistency proof" in fact for fact in found.steps[1].checked)
    broken = replace(proof, path=(bytes(32), *proof.path[1:]))
    assert step_of(case, head=newer, extensions=[broken]) == 2
    other = Extension(old=theirs.size - 1, new=newer.size, path=())
    with pytest.raises(CannotTell):
        judge(case.evidence.to_bytes(), head=newer, policy=EASY, extensions=[other])
    fork = Head(size=newer.size, root=bytes(32))
    assert step_of(case, head=fork, extensions=[proof]) == 2


def test_an_older_head_cannot_tell_and_two_of_one_size_are_two_logs(own: Federation, case: Case) -> None:
    theirs = Head.from_text(case.evidence.head)
    older = head_at(own, theirs.size - 1)
    export = [each.to_bytes() for each in own.registry.entries()]
    for given in ({}, {"export": export}):
        with pytest.raises(CannotTell, match="older"):
            judge(case.evidence.to_bytes(), head=older, policy=EASY, **given)  # type: ignore[arg-type]
    assert step_of(case, head=Head(size=theirs.size, root=bytes(32))) == 2


def test_an_export_from_before_the_head_cannot_tell(own: Federation, case: Case) -> None:
    """It was made too early; that speaks against nobody."""
    newer, size = own.registry.head(), Head.from_text(case.evidence.head).size
    export = [each.to_bytes() for each in own.registry.entries()][:size]
    with pytest.raises(CannotTell, match=f"has {size} entries, the judge's head {newer.size}"):
        judge(case.evidence.to_bytes(), head=newer, policy=EASY, export=export)


def test_an_earlier_head_is_linked_by_a_proof_or_an_export(own: Federation, case: Case) -> None:
    before, newer = head_at(own, case.place), own.registry.head()
    proofs = [own.registry.prove_extends(each) for each in (before, Head.from_text(case.evidence.head))]
    policy = replace(EASY, require_before=True)
    found = judge(case.evidence.to_bytes(), head=newer, policy=policy, before=before, extensions=proofs)
    assert any("under the earlier head" in fact for fact in found.steps[1].checked)
    with pytest.raises(CannotTell, match="the earlier head"):
        judge(case.evidence.to_bytes(), head=newer, policy=EASY, before=before, extensions=proofs[1:])
    forged = Head(size=before.size, root=bytes(32))
    assert step_of(case, head=newer, before=forged, extensions=proofs) == 2


def test_an_earlier_head_lies_before_the_investigation(own: Federation, case: Case) -> None:
    """One that was witnessed after it says nothing of what was fixed before the suspect."""
    head = Head.from_text(case.evidence.head)
    export = [each.to_bytes() for each in own.registry.entries()][: head.size]
    lenient = replace(EASY, require_dispatch=False)
    judge(case.evidence.to_bytes(), head=head, policy=lenient, export=export, before=head_at(own, case.place))
    for size in (case.place + 1, head.size):
        assert step_of(case, head=head, export=export, before=head_at(own, size)) == 2
