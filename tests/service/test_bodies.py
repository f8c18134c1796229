"""Bodies that come slowly, or not to their end, or many at a time: none is waited for for ever."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from service.small import House, house, served
from service.test_faults import until
from service.test_fetch import free_port, running
from zktrace.errors import Denied, LimitExceeded
from zktrace.service import bodies
from zktrace.service.bodies import Body, Pace, UploadPlaces
from zktrace.service.limits import Message
from zktrace.service.store import folder
from zktrace.service.visitors import Visitor

FORM = (
    "content-type: multipart/form-data; boundary=x\r\n",
    '--x\r\nContent-Disposition: form-data; name="evidence"; filename="e"\r\n\r\nhalf of it',
)


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path, stations=())


@contextmanager
def listening(made: House) -> Iterator[int]:
    port = free_port()
    again = served(made.home, made.credentials, url=f"http://127.0.0.1:{port}")
    with running(again, port):
        yield port


def operators(made: House) -> str:
    token = made.desk.tokens.issue("session", Visitor(role="operator", name="an-operator"))
    return f"authorization: Bearer {token}\r\n"


def half_sent(port: int, path: str, headers: str, body: str, *, source: str = "127.0.0.1") -> socket.socket:
    """A request that says that more will come."""
    line = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}content-length: 50000\r\n\r\n"
    line.sendall((head + body).encode())
    return line


def answered(line: socket.socket) -> str:
    """All that comes until the other side closes."""
    found = b""
    while data := line.recv(1 << 16):
        found += data
    line.close()
    return found.decode()


def files(made: House) -> list[str]:
    return [each.name for place in ("judged", "uploads") for each in folder(made.home, place).iterdir()]


def test_a_slow_link_is_waited_for_and_an_idle_one_is_not() -> None:
    now = [100.0]
    pace = Pace(lambda: now[0])
    assert pace.left(0) == bodies.IDLE
    now[0] += 10 * 3600
    assert pace.left(0) == 0.0
    assert pace.left(bodies.SLOWEST * 10 * 3600) == bodies.GRACE
    assert pace.left(bodies.SLOWEST * 10 * 3600 - 30 * bodies.SLOWEST) == bodies.GRACE - 30
    assert pace.left(1 << 40) == bodies.IDLE


@pytest.mark.parametrize("path", ["/judge", "/api/v1/investigations", "/api/v1/login"])
def test_a_body_that_does_not_come_is_given_up_and_leaves_nothing(
    small: House, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(bodies, "IDLE", 0.3)
    with listening(small) as port:
        headers, body = FORM if not path.startswith("/api/") else ("", "half of it")
        said = answered(half_sent(port, path, operators(small) + headers, body))
    assert said.startswith("HTTP/1.1 408 ")
    assert files(small) == []
    assert small.desk.jobs.listed() == []


def test_a_body_that_drips_for_ever_is_given_up() -> None:
    """Each piece comes in time, and all of them do not."""

    async def dripping() -> Message:
        return {"type": "http.request", "body": b"x", "more_body": True}

    now = [0.0]

    async def read() -> int:
        with ExitStack() as held:
            body = Body(dripping, limit=1 << 20, held=held, places=UploadPlaces(), kind="model")
            await body.take()
            body._pace = Pace(lambda: now[0])
            for count in range(10_000):
                now[0] += bodies.IDLE / 2
                if body._pace.left(body._size) == 0.0:
                    return count
                await body.take()
        return -1

    assert 0 < anyio.run(read) < 5


def test_uploads_have_places_that_are_given_back(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bodies.PLACES, "evidence", 2)
    with listening(small) as port:
        sources = [f"127.0.0.{number}" for number in (2, 3, 4)]
        lines = [half_sent(port, "/judge", *FORM, source=each) for each in sources[:2]]
        until(lambda: len(files(small)) == 2)
        closing = f"connection: close\r\n{FORM[0]}"
        refused = answered(half_sent(port, "/judge", closing, FORM[1], source=sources[2]))
        assert refused.startswith("HTTP/1.1 503 ")
        assert "retry-after" in refused
        assert len(files(small)) == 2
        model = half_sent(port, "/api/v1/investigations", operators(small), "half of it")
        until(lambda: len(files(small)) == 3)  # another kind has places of its own
        for line in (*lines, model):
            line.close()
        until(lambda: files(small) == [])
        whole = answered_whole(port, closing, sources[2])
        assert whole.startswith("HTTP/1.1 422 ")  # no evidence, and no more refused for want of a place


def answered_whole(port: int, headers: str, source: str) -> str:
    body = FORM[1] + "\r\n--x--\r\n"
    line = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
    head = f"POST /judge HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}content-length: {len(body)}\r\n\r\n"
    line.sendall((head + body).encode())
    return answered(line)


def test_a_place_is_taken_when_the_body_is_read_and_not_before(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not upload holds no place."""
    monkeypatch.setitem(bodies.PLACES, "model", 0)
    assert small.client().post("/api/v1/investigations", content=b"x").status_code == 401
    assert small.account("operator").post("/api/v1/investigations", content=b"x").status_code == 503
    assert files(small) == []


@pytest.mark.parametrize("path", ["/judge", "/api/v1/investigations", "/sign-in"])
def test_who_leaves_in_the_middle_of_a_body_is_no_news(small: House, path: str) -> None:
    said: list[logging.LogRecord] = []
    kept, log = logging.Handler(), logging.getLogger("uvicorn.error")
    kept.emit = said.append  # type: ignore[method-assign]
    headers, body = (
        FORM if path != "/sign-in" else ("content-type: application/x-www-form-urlencoded\r\n", "x")
    )
    try:
        with listening(small) as port:
            log.addHandler(kept)
            line = half_sent(port, path, operators(small) + headers, body)
            until(lambda: path == "/sign-in" or bool(files(small)))
            line.close()
    finally:
        log.removeHandler(kept)
    assert files(small) == []
    assert [each.getMessage() for each in said] == []


def test_a_body_is_over_when_its_answer_has_begun() -> None:
    async def endless() -> Message:
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    async def nowhere(message: Message) -> None:
        pass

    async def read() -> None:
        with ExitStack() as held:
            places = UploadPlaces({"model": 1})
            body = Body(endless, limit=250, held=held, places=places, kind="model")
            for _ in range(2):
                await body.take()
            with pytest.raises(Denied), places.one("model"):
                pass
            with pytest.raises(LimitExceeded):
                await body.take()
            await body.answered_by(nowhere)({"type": "http.response.start"})
            await body.take()
            with places.one("model"):
                pass

    anyio.run(read)
