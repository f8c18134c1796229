"""The judge's page: a child process reads what was uploaded, and says what the judge would say."""

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.from_thread
import httpx
import pytest

from service.small import URL, House, house
from service.test_console import judged
from zktrace.court import Minutes, judge
from zktrace.errors import (
    CannotTell,
    Denied,
    Error,
    EvidenceRejected,
    LimitExceeded,
    MalformedEvidence,
    MalformedFile,
)
from zktrace.evidence import Evidence
from zktrace.front.case import kept_evidence
from zktrace.primitives import child
from zktrace.registry.log import Head
from zktrace.registry.overview import case_lines
from zktrace.report.judgement import Hearing
from zktrace.service import hearing
from zktrace.service.hearing_child import Heard


def evidence(made: House) -> bytes:
    (line,) = case_lines(made.home.registry.ledger())
    path = kept_evidence(made.home, line)
    assert path is not None
    return path.read_bytes()


def heard(made: House, tmp_path: Path, data: bytes, head: Head) -> Hearing:
    path = tmp_path / "case.json"
    path.write_bytes(data)
    return hearing._heard(made.home, path, "case.json", head)


def test_the_child_says_what_the_judge_says(shared: House, tmp_path: Path) -> None:
    data, head = evidence(shared), shared.home.head
    minutes = Minutes()
    here = judge(data, head=head, minutes=minutes)
    there = heard(shared, tmp_path, data, head)
    assert there.outcome == here
    assert (there.steps, there.reached) == (here.steps, minutes.at)

    shift = bytes(range(256))[1:] + b"\0"
    wrong = Head(size=head.size, root=head.root.translate(shift))
    with pytest.raises((CannotTell, EvidenceRejected)) as caught:
        judge(data, head=wrong, minutes=(minutes := Minutes()))
    there = heard(shared, tmp_path, data, wrong)
    assert type(there.outcome) is type(caught.value)
    assert str(there.outcome) == str(caught.value)
    assert (there.steps, there.reached) == (minutes.steps(), minutes.at)

    with pytest.raises(EvidenceRejected) as refused:
        judge(data.replace(b'"bravo"', b'"alpha"'), head=head)
    there = heard(shared, tmp_path, data.replace(b'"bravo"', b'"alpha"'), head)
    assert isinstance(there.outcome, EvidenceRejected)
    assert (there.outcome.step, str(there.outcome)) == (refused.value.step, str(refused.value))


@pytest.mark.parametrize("data", [b"{}", b"", b"\xff" * 99, b"[" * 100_000, b'{"a":' * 50_000, b"1" * 5000])
def test_what_is_no_evidence_is_one_of_our_errors(shared: House, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(MalformedEvidence) as caught:
        heard(shared, tmp_path, data, shared.home.head)
    assert str(caught.value).isprintable()


def test_nobody_reads_the_file_in_this_process(shared: House, monkeypatch: pytest.MonkeyPatch) -> None:
    data, head = evidence(shared), shared.home.head.to_text()

    def read_here(*given: object) -> object:
        raise AssertionError("the evidence was read in this process")

    monkeypatch.setattr(Evidence, "from_bytes", read_here)
    assert "Upheld: certified-attribute" in judged(shared, data, head)


def rigged(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run `code` instead of judging."""
    boot = child._BOOT.replace("importlib.import_module(entry).main(argument)", code)
    assert boot != child._BOOT
    monkeypatch.setattr(child, "_BOOT", boot)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("sys.exit(0)", MalformedFile),
        ("sys.exit(1)", MalformedEvidence),
        ("sys.exit(41)", LimitExceeded),
        ("print('{}')", MalformedFile),
        ("print('{' * 2_000_000)", MalformedFile),
        ("print('\"' + 'a' * 3_000_000 + '\"', end='')", MalformedFile),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LimitExceeded),
        ("raise ValueError('\\x1b[31m' * 999)", MalformedEvidence),
    ],
)
def test_a_child_that_turned_against_us_is_one_of_our_errors(
    shared: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: type[Error]
) -> None:
    rigged(monkeypatch, code)
    with pytest.raises(kind) as caught:
        heard(shared, tmp_path, b"{}", shared.home.head)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500
    answer = shared.client().post(
        "/judge", data={"head": shared.home.head.to_text()}, files={"evidence": ("case.json", b"{}")}
    )
    assert answer.status_code in (413, 422)


def test_an_answer_has_the_bounds_of_a_strangers_file(shared: House, tmp_path: Path) -> None:
    told = heard(shared, tmp_path, evidence(shared), shared.home.head)
    minutes = Minutes(at=9)
    assert not isinstance(told.outcome, CannotTell | EvidenceRejected)
    fields = Heard.of(told.outcome, minutes).as_json()
    assert Heard.from_json(fields).outcome() == replace(told.outcome, steps=minutes.steps())
    for changes in (
        {"end": "acquitted"},
        {"end": "rejected"},
        {"upheld": []},
        {"reached": 10},
        {"steps": fields["steps"][:8]},
        {"reason": ["a\nb"]},
        {"more": 1},
    ):
        with pytest.raises(MalformedFile):
            Heard.from_json({**fields, **changes})


def test_a_sender_has_one_turn_and_others_have_theirs(shared: House, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, begun, answers = anyio.Event(), anyio.Event(), dict[str, int]()

    def slowly(*given: object) -> object:
        anyio.from_thread.run_sync(begun.set)
        anyio.from_thread.run(gate.wait)
        raise MalformedEvidence("as it is")

    monkeypatch.setattr(hearing, "_heard", slowly)
    head = shared.home.head.to_text()

    async def ask(address: str) -> None:
        transport = httpx.ASGITransport(app=shared.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            files = {"evidence": ("case.json", b"{}")}
            answers[address] = (await client.post("/judge", data={"head": head}, files=files)).status_code

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "2001:db8::1")
            await begun.wait()
            await ask("2001:db8::2")
            assert answers == {"2001:db8::2": 429}
            group.start_soon(ask, "192.0.2.1")
            await anyio.sleep(0.1)
            gate.set()
        await ask("2001:db8::2")

    anyio.run(all_of_them)
    assert answers == dict.fromkeys(("2001:db8::1", "2001:db8::2", "192.0.2.1"), 422)
    assert list((shared.home.root / "service" / "judged").iterdir()) == []


def test_few_are_heard_at_a_time_and_too_many_are_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, now, most = house(tmp_path, stations=("alpha",)), [0], [0]
    path = tmp_path / "case.json"
    path.write_bytes(b"{}")
    gate = anyio.Event()

    def slowly(*given: object) -> object:
        now[0] += 1
        most[0] = max(most[0], now[0])
        anyio.from_thread.run(gate.wait)
        now[0] -= 1
        raise MalformedEvidence("as it is")

    monkeypatch.setattr(hearing, "_heard", slowly)
    ends = list[type[Error]]()

    async def ask(hearings: hearing.Hearings) -> None:
        try:
            await hearings.hear(made.home, path, name="case.json", head=made.home.head.to_text())
        except Error as error:
            ends.append(type(error))

    async def all_of_them() -> None:
        hearings = hearing.Hearings()
        async with anyio.create_task_group() as group:
            for _ in range(hearing.AT_ONCE + hearing.WAITING + 5):
                group.start_soon(ask, hearings)
                await anyio.sleep(0.01)
            gate.set()

    anyio.run(all_of_them)
    assert most[0] == hearing.AT_ONCE
    assert ends.count(Denied) == 5
    assert ends.count(MalformedEvidence) == hearing.AT_ONCE + hearing.WAITING
