"""A witness signs what extends what it saw, remembers it over a restart, and keeps what a liar signed."""

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transparency.logs import ORIGIN, Log, key
from transparency.vectors import vectors
from zktrace.errors import InputError, InvalidLog, MalformedFile, Refused
from zktrace.primitives import merkle
from zktrace.transparency.asking import Witnessed, ask, check_fork, over_http, taken
from zktrace.transparency.checkpoint import hash_text
from zktrace.transparency.keys import Kind, Verifier
from zktrace.transparency.note import Note, Signature
from zktrace.transparency.request import REQUEST_LIMIT, SIZE_TYPE, AddCheckpoint, Answer
from zktrace.transparency.serving import WitnessServer, listening
from zktrace.transparency.witness import DISPUTES_LIMIT, Witness

LOG = Log()
LIAR = Log(history="another")
KEYS = (
    key(Kind.COSIGNATURE, name="w.example", number=31),
    key(Kind.ML_DSA_COSIGNATURE, name="w.example", number=32),
)
HASH = b"KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    Witness.create(tmp_path / "w", KEYS)
    made = Witness.open(tmp_path / "w", clock=lambda: 5000)
    assert made.watch((LOG.signer.verifier,)) == ORIGIN
    return made


def posted(witness: Witness, request: AddCheckpoint) -> Answer:
    return witness.answer(request.to_bytes())


def bare(old: int, new: int, path: tuple[bytes, ...]) -> AddCheckpoint:
    return AddCheckpoint(old=old, path=path, checkpoint=LOG.note(new).to_bytes())


def test_it_cosigns_what_extends_what_it_saw(witness: Witness) -> None:
    old = 0
    for size in (1, 2, 2, 7, 8, 13):
        answer = posted(witness, LOG.request(old, size))
        assert answer.status == 200
        note = Note.from_bytes(LOG.note(size).to_bytes() + answer.body.encode())
        assert [each.verifier.verify(note.text, note.signatures[at]) for at, each in enumerate(KEYS, 1)] == [
            5000
        ] * 2
        assert witness.last(ORIGIN) == LOG.checkpoint(size)
        old = size
    again = Witness.open(witness.root)
    assert again.last(ORIGIN) == LOG.checkpoint(13)
    assert again.watched() == (ORIGIN,)
    assert witness.disputes() == ()


def test_the_folder_is_its_owners_alone(witness: Witness) -> None:
    assert witness.root.stat().st_mode & 0o077 == 0
    assert (witness.root / "witness.keys").stat().st_mode & 0o777 == 0o600
    (witness.root / "witness.keys").chmod(0o644)
    with pytest.raises(Refused, match="others can read it"):
        Witness.open(witness.root)
    with pytest.raises(Refused, match="not empty"):
        Witness.create(witness.root, KEYS)
    with pytest.raises(Refused, match="no witness"):
        Witness.open(witness.root / "logs")


def test_what_the_protocol_answers(witness: Witness) -> None:
    """The status codes of c2sp.org/tlog-witness, one by one."""
    assert posted(witness, LOG.request(0, 5)).status == 200
    stranger = Log(signer=key(name="other.example", number=7))
    forger = Log(signer=key(number=8))
    cases = {
        "unknown log": (stranger.request(0, 5), 404),
        "key that is not the log's": (forger.request(5, 7), 403),
        "old above new": (bare(5, 4, ()), 400),
        "not the size that it knows": (LOG.request(4, 7), 409),
        "nothing is known of sizes": (LOG.request(0, 7), 409),
        "no proof": (bare(5, 7, ()), 422),
        "a proof from elsewhere": (bare(5, 7, LOG.path(3, 7)), 422),
        "another history": (LIAR.request(5, 7), 422),
        "the same size, another root": (LIAR.request(5, 5), 409),
        "a proof where none belongs": (bare(5, 5, LOG.path(3, 5)), 422),
    }
    for what, (request, status) in cases.items():
        answer = posted(witness, request)
        assert answer.status == status, what
        assert (answer.status, answer.body, answer.kind) == (409, "5\n", SIZE_TYPE) or status != 409, what
        assert "\u2014" not in answer.body, what
        assert witness.last(ORIGIN) == LOG.checkpoint(5), what
    assert posted(witness, LOG.request(5, 7)).status == 200


def test_what_another_witness_program_is_tested_with(witness: Witness) -> None:
    """Its statuses for empty logs, and its first checkpoints, signatures and consistency proofs."""
    empty, root = merkle.root([]), LOG.checkpoint(1).root

    def note(size: int, head: bytes) -> bytes:
        text = f"{ORIGIN}\n{size}\n{hash_text(head)}\n"
        return Note(text=text, signatures=(LOG.signer.sign(text, at=0),)).to_bytes()

    cases = [
        (0, (), 0, root, 422),
        (0, (), 0, bytes(32), 422),
        (0, (root,), 0, empty, 422),
        (0, (), 0, empty, 200),
        (0, (root,), 1, root, 422),
        (0, (), 1, root, 200),
        (0, (root,), 1, root, 409),
        (1, (), 0, empty, 400),
        (1, (), 1, root, 200),
    ]
    for old, path, size, head, status in cases:
        answer = posted(witness, AddCheckpoint(old=old, path=path, checkpoint=note(size, head)))
        assert answer.status == status, (old, size, head)
    given_ = vectors()["sigsum"]
    public = bytes.fromhex(given_["public"])
    witness.watch((Verifier(name=given_["origin"], kind=Kind.NOTE, public=public),))
    first, three, five = (each.encode() for each in given_["requests"])
    assert witness.answer(first).status == 200
    assert witness.answer(first.replace(b"old 0\n", b"old 0\n" + HASH * 64)).status == 400  # 63 at most
    assert witness.answer(five).status == 200
    assert witness.answer(three).body == "5\n"
    last = witness.last(given_["origin"])
    assert last is not None
    assert last.root.hex() == "42bb57ad06420afa4882c4a63ac6a1ec77480b330b2f20dfc53a0caa5f564e36"


def test_a_log_that_signs_with_ml_dsa_is_cosigned(witness: Witness) -> None:
    given_ = vectors()["mldsa"]
    witness.watch((Verifier.from_text(given_["verifier"]),))
    assert witness.answer(b"old 0\n\n" + given_["note"].encode()).status == 200


def test_the_example_request_of_the_specification_is_read() -> None:
    example = vectors()["request"].encode()
    found = AddCheckpoint.from_bytes(example)
    assert found.to_bytes() == example
    assert (found.old, len(found.path), len(Note.from_bytes(found.checkpoint).signatures)) == (20852014, 4, 2)
    for line in vectors()["answer"]:
        assert Signature.from_line(line[:-1]).to_line() == line


def test_a_fork_is_kept_as_proof_against_the_log_and_a_race_is_not(witness: Witness) -> None:
    posted(witness, LOG.request(0, 5))
    posted(witness, LOG.request(4, 7))  # somebody was quicker: nobody lied
    posted(witness, Log(signer=key(number=8)).request(5, 5))  # not the log's
    assert witness.disputes() == ()
    posted(witness, LIAR.request(0, 5))
    posted(witness, LIAR.request(5, 9))
    kept = [AddCheckpoint.from_bytes(each.read_bytes()) for each in witness.disputes()]
    texts = {Note.from_bytes(each.checkpoint).text for each in kept}
    assert texts == {LIAR.checkpoint(5).to_text(), LIAR.checkpoint(9).to_text()}
    for size in range(10, 10 + DISPUTES_LIMIT):
        posted(witness, AddCheckpoint(old=5, path=(), checkpoint=LIAR.note(size).to_bytes()))
    assert len(witness.disputes()) == DISPUTES_LIMIT
    name = "other.example/log"
    other, face = (Log(signer=key(name=name, number=9), history=each) for each in ("one", "another"))
    witness.watch((other.signer.verifier,))
    posted(witness, other.request(0, 3))
    posted(witness, face.request(0, 3))  # who hides behind many lies hides nobody else's
    assert len(witness.disputes()) == DISPUTES_LIMIT + 1


def test_many_signatures_of_one_key_are_one(witness: Witness) -> None:
    note = LOG.note(3)
    many = Note(text=note.text, signatures=note.signatures * 64)
    answer = witness.answer(AddCheckpoint(old=0, path=(), checkpoint=many.to_bytes()).to_bytes())
    assert answer.status == 200
    assert witness.last(ORIGIN) == LOG.checkpoint(3)


def test_one_process_has_the_folder(witness: Witness) -> None:
    code = (
        "import sys; from pathlib import Path; from zktrace.transparency.witness import Witness\n"
        "with Witness.open(Path(sys.argv[1])).alone(): print('mine')"
    )
    ran = [sys.executable, "-c", code, str(witness.root)]
    with witness.alone():
        other = subprocess.run(ran, capture_output=True, text=True, check=False)
        assert "another process is using this witness" in other.stderr
    assert subprocess.run(ran, capture_output=True, text=True, check=True).stdout == "mine\n"


def test_it_needs_neither_numpy_nor_the_registry() -> None:
    code = (
        "import sys, zktrace.transparency.serving, zktrace.transparency.asking, zktrace.transparency.proof\n"
        "heavy = ('numpy', 'flint', 'safetensors', 'zktrace.registry', 'zktrace.credentials')\n"
        "print(*sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), cut=st.integers(0, 500), put=st.binary(max_size=5))
def test_whatever_comes_is_answered(witness: Witness, data: bytes, cut: int, put: bytes) -> None:
    """And only what the log signed is remembered."""
    whole = LOG.request(0, 5).to_bytes()
    for each in (data, whole[:cut] + put + whole[cut + len(put) :]):
        assert witness.answer(each).status in {200, 400, 403, 404, 409, 422}
    assert witness.last(ORIGIN) in (None, LOG.checkpoint(5))


@pytest.mark.parametrize(
    "keys",
    [(), (key(Kind.NOTE),), KEYS * 9],
)
def test_what_is_no_witness(tmp_path: Path, keys: tuple[object, ...]) -> None:
    with pytest.raises(InputError):
        Witness.create(tmp_path / "w", keys)  # type: ignore[arg-type]


def test_a_log_is_watched_by_keys_that_sign_for_it(witness: Witness) -> None:
    other = key(name="other.example").verifier
    for keys in ((), (LOG.signer.verifier, other), (KEYS[0].verifier,)):
        with pytest.raises(InputError):
            witness.watch(keys)
    witness.watch((LOG.signer.verifier, key(Kind.ML_DSA_COSIGNATURE, number=9).verifier))
    assert witness.watched() == (ORIGIN,)
    (path,) = (witness.root / "logs").iterdir()
    path.write_text("")
    with pytest.raises(MalformedFile, match="has no key"):
        witness.watched()


@contextmanager
def served(witness: Witness, *, lifetime: float | None = None) -> Iterator[WitnessServer]:
    with listening(witness) as server:
        if lifetime is not None:
            server.lifetime = lifetime
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(server: WitnessServer, log: Log, size: int, *, old: int = 0) -> Witnessed:
    note = log.note(size)
    return ask(
        note, KEYS[0].verifier, path=lambda since: log.path(since, size), by=over_http(server.url), old=old
    )


def test_a_log_asks_over_http(witness: Witness) -> None:
    with served(witness) as server:
        for size, old in (
            (3, 0),
            (3, 3),
            (8, 3),
            (13, 0),
            (21, 5),
        ):  # also where it forgot
            found = asked(server, LOG, size, old=old)
            assert (found.name, found.at, found.reason) == ("w.example", 5000, "")
            assert found.signature is not None
        behind = asked(server, LOG, 13)
        assert "it has seen 21 entries already" in behind.reason
        assert not behind.forked
        for size in (21, 34):
            forked = asked(server, LIAR, size)
            assert forked.forked
            with pytest.raises(InvalidLog, match="a fork"):
                check_fork([behind, forked])
        stranger = asked(server, Log(signer=key(name="other.example", number=7)), 3)
        assert (stranger.reason, stranger.forked) == ("it does not watch this log", False)
        check_fork([behind, stranger])
    nobody = asked(server, LOG, 34)
    assert nobody.signature is None
    assert nobody.reason == "it answered 0"


def exchange(server: WitnessServer, data: bytes) -> bytes:
    """What comes back for bytes on a connection that is then closed."""
    with socket.create_connection(server.server_address[:2], timeout=20) as connection:  # type: ignore[arg-type]
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while more := connection.recv(65536):
            got += more
    return got


def test_a_hostile_connection_is_answered_in_bounds_or_closed(witness: Witness) -> None:
    head = b"POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n"
    cases = {
        b"GET / HTTP/1.1\r\nHost: w\r\n\r\n": b"405",
        b"POST / HTTP/1.1\r\nHost: w\r\n\r\n": b"404",
        head + b"\r\n": b"411",
        head + b"Content-Length: -1\r\n\r\n": b"411",
        head + b"Content-Length: 99999999999\r\n\r\n": b"411",
        head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n": b"411",
        head + b"Content-Length: %d\r\n\r\n" % (REQUEST_LIMIT + 1): b"413",
        head + b"Content-Length: 5\r\n\r\nold 0": b"400",
        b"PUT /add-checkpoint HTTP/1.1\r\n\r\n": b"501",
        b"\x00\xff\xfe nonsense\r\n\r\n": b"400",
        b"POST " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n": b"414",
    }
    with served(witness) as server:
        for sent, status in cases.items():
            assert status in exchange(server, sent).split(b"\r\n", 1)[0], sent[:60]
        assert exchange(server, head + b"Content-Length: 500\r\n\r\nold 0") == b""  # broke off: not answered
        assert asked(server, LOG, 3).signature is not None
    assert witness.last(ORIGIN) == LOG.checkpoint(3)


def test_a_connection_that_trickles_is_cut(witness: Witness) -> None:
    with served(witness, lifetime=0.2) as server:
        connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
        connection.putrequest("POST", "/add-checkpoint")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b"old")  # and then nothing
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.getresponse()
        connection.close()


def test_a_connection_is_kept_for_the_next_request(witness: Witness) -> None:
    with served(witness) as server:
        connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
        for old, size in ((0, 2), (2, 5)):
            connection.request("POST", "/add-checkpoint", body=LOG.request(old, size).to_bytes())
            response = connection.getresponse()
            assert response.status == 200
            assert response.read().startswith("\u2014 w.example ".encode())
        connection.close()


def test_many_at_once_make_one_history(witness: Witness) -> None:
    """Whoever comes with an old size is told so; nothing is rolled back."""
    with served(witness) as server:
        sizes = [3, 8, 5, 13, 2, 21, 9, 1]
        threads = [threading.Thread(target=asked, args=(server, LOG, size)) for size in sizes]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert asked(server, LOG, 21).signature is not None
    assert witness.last(ORIGIN) == LOG.checkpoint(21)
    assert witness.disputes() == ()


def test_a_folder_that_cannot_be_written_is_a_fault_of_the_witness(
    witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise Refused("no space left")

    with served(witness) as server:
        monkeypatch.setattr("zktrace.transparency.witness.write_atomic", full)
        found = asked(server, LOG, 3)
        assert (found.signature, found.reason) == (None, "it answered 500")
        assert server.complaints == ["no space left"]
        monkeypatch.undo()
    assert witness.last(ORIGIN) is None


def test_a_place_that_is_taken_is_refused(witness: Witness, tmp_path: Path) -> None:
    other = Witness.create(tmp_path / "other", KEYS)
    with listening(witness) as server:
        port = int(server.server_address[1])
        with pytest.raises(Refused, match="cannot listen"), listening(other, port=port):
            pass


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=200, body=""),
        Answer(status=200, body="nonsense\n"),
        Answer(status=200, body="\u2014 w.example AAAA\n"),
        Answer(status=200, body=key(Kind.COSIGNATURE, name="x").sign("a\n", at=1).to_line()),
        Answer(status=200, body=KEYS[0].sign(LOG.checkpoint(4).to_text(), at=1).to_line()),
        Answer(status=409, body="many\n"),
        Answer(status=403, body=""),
        Answer(status=302, body=""),
    ],
)
def test_a_witness_that_answers_nonsense_costs_its_signature_and_nothing_else(answer: Answer) -> None:
    found = ask(LOG.note(5), KEYS[0].verifier, path=lambda old: LOG.path(old, 5), by=lambda _: answer)
    assert found.signature is None
    assert found.reason
    assert not found.forked


def test_an_answer_in_a_file_is_taken_like_one_over_the_network() -> None:
    note = LOG.note(5)
    lines = "".join(each.sign(note.text, at=77).to_line() for each in KEYS)
    assert [taken(note, each.verifier, lines).at for each in KEYS] == [77, 77]


@pytest.mark.parametrize(
    "url", ["", "w.example", "ftp://w", "http://", "http://w:99999", "http://w/?x=1", "file:///etc"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match="not the address"):
        over_http(url)


def test_no_scratch_is_left(witness: Witness) -> None:
    posted(witness, LOG.request(0, 5))
    assert not [name for _, _, names in os.walk(witness.root) for name in names if name.startswith(".")]
