"""A verdict is one that a judge reads: no more names, and no more stages, than evidence may have."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from zktrace.certificates.adjudicate import Verdict
from zktrace.evidence.findings import ACCUSED_LIMIT, WORK_LIMIT, judges_work
from zktrace.tracing.score import _effort, _scored


def beyond(recipient: int, carrier: str = "weight", by: str = "soft") -> Any:
    return SimpleNamespace(recipient=recipient, carrier=carrier, by=by, score=Fraction(1000 - recipient))


def stage(*recipients: int, carriers: tuple[str, ...] = ("weight",)) -> Any:
    named = tuple(beyond(each, carrier) for each in recipients for carrier in carriers)
    return SimpleNamespace(verdict=Verdict.ATTRIBUTE, named=named, leads=())


def readings(length: int, *carriers: str) -> Any:
    biases = SimpleNamespace(length=length)
    return tuple(
        SimpleNamespace(carrier=each, coefficients=SimpleNamespace(biases=biases)) for each in carriers
    )


def test_the_strongest_are_named_and_nobody_after_them() -> None:
    found = _scored((stage(*range(ACCUSED_LIMIT + 44)), stage(999)), readings(512, "weight"))
    assert [each.recipient for (only,) in [found.stages] for each in only] == list(range(ACCUSED_LIMIT))
    two = stage(*range(ACCUSED_LIMIT + 1), carriers=("weight", "feature"))
    found = _scored((two,), readings(512, "weight", "feature"))
    assert len({each.recipient for each in found.stages[0]}) == ACCUSED_LIMIT
    assert len(found.stages[0]) == 2 * ACCUSED_LIMIT


def test_a_second_stage_fills_what_is_left() -> None:
    found = _scored((stage(*range(250)), stage(*range(300))), readings(512, "weight"))
    assert [len(each) for each in found.stages] == [250, 6]


@pytest.mark.parametrize(("length", "names"), [(2048, 8), (4096, 4), (8192, 2)])
def test_stages_end_where_a_judge_would_stop_reading(length: int, names: int) -> None:
    carriers = tuple(f"c{at}" for at in range(names))
    stages = (
        stage(*range(100), carriers=carriers),
        *(stage(100 + at, carriers=carriers) for at in range(15)),
    )
    found = _scored(stages, readings(length, *carriers))
    lengths = dict.fromkeys(carriers, length)
    assert judges_work(_effort(found.stages, lengths)) <= WORK_LIMIT
    assert 1 <= len(found.stages) < len(stages)
    longer = [*found.stages, stages[len(found.stages)].named]
    assert judges_work(_effort(longer, lengths)) > WORK_LIMIT


@pytest.mark.parametrize(("length", "named"), [(8192, 8), (2048, 16), (512, 16)])
def test_there_is_room_for_128_named_over_many_stages(length: int, named: int) -> None:
    stages = tuple(stage(*range(named * at, named * at + named)) for at in range(128 // named))
    assert len(_scored(stages, readings(length, "weight")).stages) == len(stages)


def test_two_scores_of_a_carrier_are_twice_the_work() -> None:
    one, other = (beyond(1, by="soft"),), (beyond(1, by="soft"), beyond(1, by="map"))
    assert judges_work(_effort([other], {"weight": 2048})) == 2 * judges_work(
        _effort([one], {"weight": 2048})
    )


def test_few_are_named_as_they_are() -> None:
    found = _scored((stage(3, 1), stage(3, 1, 7), stage(7)), readings(512, "weight"))
    assert [[each.recipient for each in one] for one in found.stages] == [[3, 1], [7]]
