"""Names and logs that break the ledger's rules: what the judge sees without a registry, and what with one."""

from dataclasses import replace

import pytest

from court.forge import export_of, places_of, records_of, relogged, renamed, sealed, the
from tracing.small import Federation, federation, public_key
from zktrace.court import Policy, judge
from zktrace.errors import EvidenceRejected
from zktrace.registry.log import Head
from zktrace.registry.records import EnrolmentRecord, ReleaseRecord, VerdictRecord
from zktrace.tracing import Case

EASY = Policy(min_length=64)


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation()


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    return own.trace((2,))


def step_of(data: bytes, head: Head, **given: object) -> int:
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head, policy=EASY, **given)  # type: ignore[arg-type]
    return caught.value.step


@pytest.mark.parametrize(
    "name",
    [
        "station-2, station-3",
        "[bold red]station-2[/bold red]",
        "<script>alert(1)</script>",
        "st\N{CYRILLIC SMALL LETTER A}tion-2",
        ".station-2",
        "station-2 ",
        "s" * 65,
    ],
)
def test_a_name_that_no_ledger_takes_is_rejected_without_a_registry(
    own: Federation, case: Case, name: str
) -> None:
    enrolment = replace(the(own, case, EnrolmentRecord), station=name)
    data, head, _ = relogged(own, case, enrolment, evidence=renamed(case, {"station-2": name}))
    assert step_of(data, head) == 4


def test_a_release_name_that_no_ledger_takes_is_rejected(own: Federation, case: Case) -> None:
    release = replace(the(own, case, ReleaseRecord), name="r1<b>")
    assert step_of(*relogged(own, case, release)[:2]) == 4


def test_two_accused_are_two_stations() -> None:
    own = federation(length=256)
    case = own.trace((0, 3))
    assert set(case.names) == {"station-0", "station-3"}
    log, places = records_of(own)[: case.verdict_place + 1], places_of(case)
    zero, three = (log[at] for at in places if isinstance(log[at], EnrolmentRecord))
    assert isinstance(zero, EnrolmentRecord)
    assert isinstance(three, EnrolmentRecord)
    names = {"station-0": "station-0", "station-3": "Station_O"}
    for other in (
        replace(three, station="Station_O"),
        replace(three, row=zero.row),
        replace(three, public_key=zero.public_key, codeword=zero.codeword),
    ):
        changed = [other if each == three else each for each in log]
        evidence = renamed(case, names) if other.station != three.station else case.evidence
        data, head, _ = sealed(evidence, changed, places)
        assert step_of(data, head) in ((3, 4) if other.station == three.station else (4,))


def test_a_second_enrolment_of_a_name_needs_the_registry_to_be_seen(own: Federation, case: Case) -> None:
    """The file shows the first one; that there is another is in no file."""
    log = records_of(own)[: case.verdict_place + 1]
    verdict = log[-1]
    assert isinstance(verdict, VerdictRecord)
    other = replace(the(own, case, EnrolmentRecord), row=6, public_key=public_key(7).to_bytes())
    at = next(i for i, each in enumerate(log) if isinstance(each, ReleaseRecord))
    forged = [*log[:at], other, *log[at:-1], replace(verdict, investigation=case.place + 1)]
    places = [each + (each >= at) for each in places_of(case)]
    data, head, final = sealed(case.evidence, forged, places)
    found = judge(data, head=head, policy=EASY)
    assert any("that the log keeps its rules" in fact for fact in found.unchecked)
    assert step_of(data, head, export=export_of(final)) == 4


def test_there_is_room_for_all_rows_before_a_row(own: Federation, case: Case) -> None:
    enrolment = the(own, case, EnrolmentRecord)  # entry 3 of the log
    for row in (3, 5):  # another place of the code may be seen by what is opened already
        assert step_of(*relogged(own, case, replace(enrolment, row=row))[:2]) in (3, 4)
