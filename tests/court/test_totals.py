"""Many small looks: what all investigations of a log may have spent together is said, and can be refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tracing.small import Federation, federation
from zktrace.court import Policy, judge
from zktrace.errors import EvidenceRejected
from zktrace.registry.log import Head
from zktrace.registry.records import DispatchRecord
from zktrace.tracing import Case

LOOK = Fraction(1, 100)
LENIENT = Policy(min_length=64, max_total_budget=Fraction(999, 1000))


@pytest.fixture(scope="module")
def own() -> Federation:
    own = federation(budget=Fraction(99, 100))
    own.registry.add(DispatchRecord(station="station-2", release="r1", copy=bytes(32)))
    return own


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    """A hit after five looks at nothing."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        own.investigate([own.readout("weight", rng.standard_normal(128))], budget=LOOK)
    return own.trace((2,), budget=LOOK)


def exported(own: Federation) -> list[bytes]:
    return [each.to_bytes() for each in own.registry.entries()]


def test_without_a_registry_the_setup_is_the_bound(own: Federation, case: Case) -> None:
    data, head = case.evidence.to_bytes(), Head.from_text(case.evidence.head)
    with pytest.raises(EvidenceRejected, match="may have spent 99/100") as caught:
        judge(data, head=head, policy=Policy(min_length=64))  # not even the default policy lets it stand
    assert caught.value.step == 8
    found = judge(data, head=head, policy=LENIENT)
    assert "at most 1/100 for this investigation and 99/100 for all of the log together" in found.bound
    assert "not recounted" in found.bound
    assert any("spent of the 99/100 that the setup declares" in fact for fact in found.unchecked)


def test_with_a_registry_what_was_spent_is_counted(own: Federation, case: Case) -> None:
    data, head = case.evidence.to_bytes(), Head.from_text(case.evidence.head)
    export = exported(own)[: head.size]
    found = judge(data, head=head, policy=Policy(min_length=64), export=export)
    assert (found.total.upto, found.total.whole, found.total.recounted) == (6 * LOOK, 6 * LOOK, True)
    assert "and 3/50 for all of the log up to it (recounted)" in found.bound
    exact = replace(LENIENT, max_total_budget=6 * LOOK)
    judge(data, head=head, policy=exact, export=export)
    below = replace(LENIENT, max_total_budget=Fraction(1, 20))
    with pytest.raises(EvidenceRejected, match="spent 3/50, the policy allows 1/20") as caught:
        judge(data, head=head, policy=below, export=export)
    assert caught.value.step == 8


def test_evidence_stays_good_when_later_looks_spend_more(own: Federation, case: Case) -> None:
    own.trace((3,), budget=LOOK)
    exact = replace(LENIENT, max_total_budget=6 * LOOK)
    found = judge(case.evidence.to_bytes(), head=own.registry.head(), policy=exact, export=exported(own))
    assert (found.total.upto, found.total.whole) == (6 * LOOK, 7 * LOOK)
    assert "recounted; 7/100 with those after it" in found.bound
