"""Statements about copies: what they say and do not say, and that nothing in them can be bent."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import seeded
from zktrace.attestations.predicates import (
    PREDICATES,
    DispatchPredicate,
    LogPlace,
    ReceiptPredicate,
    VerdictPredicate,
)
from zktrace.attestations.statement import Statement, attest, check_attestation
from zktrace.credentials import SecretKey, by_name
from zktrace.errors import Error, InputError, InvalidProof, MalformedFile, Refused, Rejected
from zktrace.front.attesting import attest_dispatch, attest_receipt, attest_verdict
from zktrace.front.receipts import delivery, take
from zktrace.front.workspace import Workspace
from zktrace.models import model_digest, open_model, save_model
from zktrace.models.oms import oms_digest
from zktrace.primitives.canonical import to_json
from zktrace.registry.requests import Request
from zktrace.registry.signing import Receipt
from zktrace.registry.witnessing import PublicLog
from zktrace.transparency.envelope import IN_TOTO, SignedEnvelope
from zktrace.transparency.keys import Kind, Signer, Verifier
from zktrace.transparency.proof import LogProof

WEAK = by_name("test-128-64-16")
KEYS = {name: SecretKey.generate(WEAK, entropy=seeded(name)) for name in ("alpha", "bravo", "carol")}
WITNESS = Signer(name="w.example", kind=Kind.COSIGNATURE, seed=bytes(32))
STATED = ("dispatch", "receipt", "verdict")


@dataclass(frozen=True, kw_only=True)
class World:
    """A registry whose log has a dispatch, a receipt and a verdict, all about alpha's copy."""

    home: Workspace
    copy: Path
    files: dict[str, bytes]

    @property
    def keys(self) -> tuple[Verifier, ...]:
        return tuple(each.verifier for each in self.signers)

    @property
    def signers(self) -> tuple[Signer, ...]:
        return PublicLog(self.home).signers()

    def body(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(SignedEnvelope.from_bytes(self.files[kind]).payload)
        return found

    def signed(self, body: dict[str, Any]) -> bytes:
        """By the log's own keys: what an operator who lies would hand out."""
        return SignedEnvelope.sign(IN_TOTO, to_json(body), self.signers).to_bytes()


def shared() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        f"bn{i}.{kind}": abs(rng.normal(1, 0.1, 256)).astype("f4")
        for i in range(8)
        for kind in ("weight", "bias", "running_mean", "running_var")
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = Workspace.create(tmp_path_factory.mktemp("attested") / "ws", title="North", carriers=("weight",))
    for name, key in KEYS.items():
        home.enrol(name, Request.make(key, home.offer), allow_weak_params=True)
    home.release(shared(), carriers=("weight",))
    for name in KEYS:
        home.dispatch(name, release="r1")
    for name in ("alpha", "bravo"):
        take(home, Receipt.sign(KEYS[name], delivery(home, name, "r1")), allow_weak_params=True)
    copy = home.copy_path("r1", "alpha")
    case = home.trace(copy)
    assert case.named == ("alpha",)
    log = PublicLog(home)
    log.make_keys("north.example/gnss", (Kind.NOTE, Kind.ML_DSA_COSIGNATURE))
    note = log.sign()
    log.add_witness(WITNESS.verifier)
    log.take("w.example", WITNESS.sign(note.text, at=1000).to_line())
    files = {
        "dispatch": attest_dispatch(home, "alpha", "r1"),
        "receipt": attest_receipt(home, "alpha", "r1", copy),
        "verdict": attest_verdict(home, next(iter(home.registry.ledger().investigations)), copy),
    }
    return World(home=home, copy=copy, files=files)


@pytest.mark.parametrize("kind", STATED)
def test_a_statement_holds_for_whoever_has_the_logs_keys_and_the_copy(world: World, kind: str) -> None:
    keys = world.keys
    found = check_attestation(world.files[kind], keys=keys, witnesses=[WITNESS.verifier], model=world.copy)
    assert found.statement.predicate.kind == kind
    assert found.statement.digest == oms_digest(world.copy)
    assert found.statement.predicate.state == model_digest(open_model(world.copy))
    assert found.signed == ("north.example/gnss",)
    assert [each.name for each in found.checkpoint.witnesses] == ["w.example"]
    for key in keys:  # either is enough
        assert check_attestation(world.files[kind], keys=[key]).statement == found.statement
    again = Statement.from_bytes(found.statement.to_bytes())
    assert again == found.statement
    assert check_attestation(attest(again, world.signers), keys=keys).statement == again


def test_what_other_tools_read_of_them(world: World) -> None:
    for kind in STATED:
        outer = json.loads(world.files[kind])
        assert outer["payloadType"] == "application/vnd.in-toto+json"
        body = world.body(kind)
        assert body.keys() == {"_type", "subject", "predicateType", "predicate"}
        assert body["_type"] == "https://in-toto.io/Statement/v1"
        assert body["predicateType"] == f"https://zktrace/{kind}/v1"
        assert body["subject"] == [{"name": "r1", "digest": {"sha256": oms_digest(world.copy).hex()}}]
    said = world.body("verdict")["predicate"]
    assert (said["verdict"], said["named"], said["budget"]) == ("certified-attribute", ["alpha"], "1/1000")
    assert world.body("dispatch")["predicate"]["station"] == "alpha"
    receipts = [each for _, each in world.home.registry.ledger().receipts if each.station == "alpha"]
    assert [world.body("receipt")["predicate"]["receipt"]] == [each.receipt.hex() for each in receipts]


def test_no_statement_says_anything_of_a_station_that_it_does_not_name(world: World) -> None:
    """Neither its name, nor its copy, nor what its rows are made of; nor any row or score of the named."""
    fields = {
        "dispatch": {"station", "release", "copy", "log"},
        "receipt": {"station", "release", "copy", "rounds", "receipt", "log"},
        "verdict": {
            "verdict", "named", "release", "suspect", "budget", "findings", "log", "investigation",
        },
    }  # fmt: skip
    others = [model_digest(open_model(world.home.copy_path("r1", name))) for name in ("bravo", "carol")]
    for kind in STATED:
        predicate = Statement.from_bytes(SignedEnvelope.from_bytes(world.files[kind]).payload).predicate
        assert predicate.as_json().keys() == fields[kind]
        whole = b"".join(each.proof for each in predicate.places)
        opened = b"".join(LogProof.from_bytes(each.proof).extra or b"" for each in predicate.places)
        for name, copy in zip(("bravo", "carol"), others, strict=True):
            for text in (world.files[kind], to_json(world.body(kind)), whole, opened):
                assert name.encode() not in text
                assert copy.hex().encode() not in text
        assert b'"score"' not in opened
        assert b'"row"' not in opened


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, name))
    else:
        yield path


def changed(value: Any) -> list[Any]:
    if isinstance(value, int):
        return [value + 1, -1, str(value), None]
    if isinstance(value, list):
        return [["x"], [0], None]
    middle = len(value) // 2
    other = "0" if value[middle] != "0" else "1"
    return [value[:middle] + other + value[middle + 1 :], value + "0", "", 7, None]


def put(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = json.loads(json.dumps(body))
    inner = found
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return found


FREE = {("subject", 0, "name")}  # what a reader calls it: nothing follows from it
BY_THE_MODEL = {("subject", 0, "digest", "sha256")}  # not in the log: only the copy itself shows it


@pytest.mark.parametrize("kind", STATED)
def test_every_field_is_held_against_the_log_even_if_the_operator_lies(world: World, kind: str) -> None:
    body, tried = world.body(kind), 0
    for path in leaves(body):
        if path in FREE:
            continue
        old = body
        for name in path:
            old = old[name]
        for value in changed(old):
            data = world.signed(put(body, path, value))
            model = world.copy if path in BY_THE_MODEL else None
            with pytest.raises((Rejected, MalformedFile)):
                check_attestation(data, keys=world.keys, model=model)
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("kind", STATED)
def test_no_field_is_taken_out_or_put_in(world: World, kind: str) -> None:
    body = world.body(kind)
    for inner in ((), ("subject", 0), ("subject", 0, "digest"), ("predicate",), ("predicate", "log")):
        table = body
        for name in inner:
            table = table[name]
        wrong = [{name: each for name, each in table.items() if name != gone} for gone in table]
        for value in [*wrong, table | {"more": 1}]:
            data = world.signed(put(body, inner, value) if inner else value)
            with pytest.raises(MalformedFile):
                check_attestation(data, keys=world.keys)
    for subjects in ([], body["subject"] * 2, None):
        with pytest.raises(MalformedFile):
            check_attestation(world.signed(body | {"subject": subjects}), keys=world.keys)


def test_a_statement_of_another_kind_about_the_same_entry_does_not_hold(world: World) -> None:
    """The fields fit, the entry is another: a receipt's proof makes no dispatch."""
    stolen = world.body("receipt")["predicate"]["log"]
    body = put(world.body("dispatch"), ("predicate", "log"), stolen)
    with pytest.raises(InvalidProof, match="of the kind receipt, not dispatch"):
        check_attestation(world.signed(body), keys=world.keys)
    asked = world.body("verdict")
    asked["predicate"]["investigation"] = asked["predicate"]["log"]
    with pytest.raises(InvalidProof, match="of the kind verdict, not investigation"):
        check_attestation(world.signed(asked), keys=world.keys)


def test_another_stations_entry_makes_another_statement(world: World) -> None:
    other = json.loads(SignedEnvelope.from_bytes(attest_dispatch(world.home, "bravo", "r1")).payload)
    body = put(world.body("dispatch"), ("predicate", "log"), other["predicate"]["log"])
    with pytest.raises(InvalidProof, match="not what the entries of the log say"):
        check_attestation(world.signed(body), keys=world.keys)
    with pytest.raises(InvalidProof, match="its files have the digest"):
        check_attestation(world.signed(other), keys=world.keys, model=world.copy)


def test_other_files_with_the_digest_of_the_statement_must_be_the_copy(world: World) -> None:
    """An operator who states the digest of another file is found out by the tensors in it."""
    other = world.home.copy_path("r1", "bravo")
    digest = oms_digest(other).hex()
    data = world.signed(put(world.body("dispatch"), ("subject", 0, "digest", "sha256"), digest))
    assert check_attestation(data, keys=world.keys)
    with pytest.raises(InvalidProof, match="its tensors have the digest"):
        check_attestation(data, keys=world.keys, model=other)


def test_only_the_keys_that_are_given_count(world: World) -> None:
    stranger = Signer(name="north.example/gnss", kind=Kind.NOTE, seed=bytes([9]) * 32)
    data, statement = world.files["dispatch"], world.body("dispatch")
    with pytest.raises(InvalidProof, match="envelope"):
        check_attestation(data, keys=[stranger.verifier])
    forged = SignedEnvelope.sign(IN_TOTO, to_json(statement), [stranger]).to_bytes()
    with pytest.raises(InvalidProof, match="envelope"):
        check_attestation(forged, keys=world.keys)
    with pytest.raises(InvalidProof, match="checkpoint"):  # a right statement; its log is another's
        check_attestation(forged, keys=[stranger.verifier])
    unseen = Signer(name="w2.example", kind=Kind.COSIGNATURE, seed=bytes([8]) * 32).verifier
    with pytest.raises(InvalidProof, match="cosigned"):
        check_attestation(data, keys=world.keys, witnesses=[WITNESS.verifier, unseen])
    with pytest.raises(InputError):
        check_attestation(data, keys=[])
    with pytest.raises(InputError):
        check_attestation(data, keys=[WITNESS.verifier])
    other = SignedEnvelope.sign("application/json", to_json(statement), world.signers)
    with pytest.raises(InvalidProof, match="of the kind"):
        check_attestation(other.to_bytes(), keys=world.keys)


def test_the_two_entries_of_a_verdict_are_under_one_checkpoint(tmp_path: Path) -> None:
    home = Workspace.create(tmp_path / "ws", title="North", carriers=("weight",))
    home.enrol("alpha", Request.make(KEYS["alpha"], home.offer), allow_weak_params=True)
    home.release(shared(), carriers=("weight",))
    home.dispatch("alpha", release="r1")
    copy = home.copy_path("r1", "alpha")
    home.trace(copy)
    log = PublicLog(home)
    log.make_keys("north.example/gnss", (Kind.NOTE,))
    log.sign()
    (place,), verdicts = home.registry.ledger().investigations, home.registry.ledger().verdicts
    early = LogPlace.of(log.proof(place))
    home.reserve("place", 4)
    with pytest.raises(Refused, match="there is no entry"):
        log.proof(len(home.registry.entries()) - 1)
    log.sign()
    late = LogPlace.of(log.proof(verdicts[place][0]))
    mixed = Statement.about(copy, VerdictPredicate.of(late, early))
    keys = [each.verifier for each in log.signers()]
    with pytest.raises(InvalidProof, match="two checkpoints"):
        check_attestation(attest(mixed, log.signers()), keys=keys)
    assert check_attestation(attest_verdict(home, place, copy), keys=keys, model=copy)


def test_nothing_is_stated_that_the_log_does_not_have(world: World, tmp_path: Path) -> None:
    home = world.home
    bravo = home.copy_path("r1", "bravo")
    (place,) = home.registry.ledger().investigations
    for call, said in (
        (lambda: attest_dispatch(home, "alpha", "r1", bravo), "no copy of r1 that was dispatched to alpha"),
        (lambda: attest_receipt(home, "carol", "r1"), "signed for no such copy"),
        (lambda: attest_receipt(home, "alpha", "r1", bravo), "signed for no such copy"),
        (lambda: attest_verdict(home, place, bravo), "is not the suspect"),
        (lambda: attest_verdict(home, 0, world.copy), "is no investigation"),
        (lambda: attest_dispatch(home, "nobody", "r1"), "nobody"),
        (lambda: attest_dispatch(home, "alpha", "r9"), "r9"),
        (lambda: attest_dispatch(home, "alpha", "r1", tmp_path / "none"), "none"),
    ):
        with pytest.raises(Refused, match=said):
            call()
    folder = tmp_path / "again"
    folder.mkdir()
    save_model(folder / "model.safetensors", open_model(world.copy))
    data = attest_dispatch(home, "alpha", "r1", folder)  # the same tensors, handed out in another way
    found = check_attestation(data, keys=world.keys, model=folder).statement
    assert isinstance(found.predicate, DispatchPredicate)
    assert found.digest == oms_digest(folder)


def test_a_receipt_for_rounds_says_in_which_a_copy_was_sent() -> None:
    """Of a batch: the rounds of this copy alone."""
    from zktrace.registry.records import Entry
    from zktrace.registry.signing import ReceiptRecord
    from zktrace.transparency.checkpoint import LogCheckpoint
    from zktrace.transparency.note import Note

    one, two = bytes([1]) * 32, bytes([2]) * 32
    record = ReceiptRecord(
        station="alpha", release="r1", rounds=(3, 5, 8), copies=(one, two, one), receipt=bytes(32)
    )
    entry = Entry(at="2026-01-31T12:00:00Z", record=record)
    text = LogCheckpoint(origin="o", size=1, root=bytes(32)).to_text()
    signer = Signer(name="o", kind=Kind.NOTE, seed=bytes(32))
    note = Note(text=text, signatures=(signer.sign(text, at=0),)).to_bytes()
    place = LogPlace.of(LogProof(index=0, path=(), checkpoint=note, extra=entry.to_bytes()))
    assert ReceiptPredicate.of(place, one).rounds == (3, 8)
    assert ReceiptPredicate.of(place, two).rounds == (5,)
    with pytest.raises(InvalidProof, match="for no copy"):
        ReceiptPredicate.of(place, bytes(32))
    with pytest.raises(MalformedFile, match="does not hold the entry"):
        LogPlace.of(LogProof(index=0, path=(), checkpoint=note))


@given(cut=st.integers(0, 4000), put_in=st.binary(max_size=4), kind=st.sampled_from(STATED))
def test_whatever_is_read_is_a_statement_of_the_same_bytes_or_an_error_of_ours(
    world: World, cut: int, put_in: bytes, kind: str
) -> None:
    whole = SignedEnvelope.from_bytes(world.files[kind]).payload
    for data in (put_in, whole[:cut] + put_in + whole[cut + len(put_in) :], whole[:cut]):
        try:
            found = Statement.from_bytes(data)
        except Error:
            continue
        assert found.to_bytes() == data
        assert found.predicate.uri in PREDICATES
