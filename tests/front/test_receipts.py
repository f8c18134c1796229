"""Stations sign for copies: what is asked and signed, what goes on record, what a judge makes of it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zktrace
from registry.reference import facts, replayed
from support import seeded
from zktrace.court import Policy
from zktrace.court import judge as court_judge
from zktrace.credentials import SecretKey, by_name
from zktrace.errors import Error, EvidenceRejected, InvalidLog, InvalidProof, MalformedFile, Refused
from zktrace.front.receipts import delivery, kept, sign, take
from zktrace.front.workspace import Workspace
from zktrace.models import ModelState, model_digest, open_model
from zktrace.registry.export import write_export
from zktrace.registry.log import Head
from zktrace.registry.records import Entry
from zktrace.registry.requests import Request
from zktrace.registry.signing import COPIES_LIMIT, Delivery, Receipt, ReceiptRecord

WEAK = by_name("test-128-64-16")
KEYS = {name: SecretKey.generate(WEAK, entropy=seeded(name)) for name in ("alpha", "bravo", "carol")}


def shared() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        f"bn{i}.{kind}": abs(rng.normal(1, 0.1, 256)).astype("f4")
        for i in range(8)
        for kind in ("weight", "bias", "running_mean", "running_var")
    }


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws", title="North", carriers=("weight", "spread"))
    for name, key in KEYS.items():
        made.enrol(name, Request.make(key, made.offer), allow_weak_params=True)
    made.release(shared(), carriers=("weight",), length=256)
    made.dispatch("alpha", release="r1")
    made.dispatch("bravo", release="r1")
    return made


def signed(home: Workspace, name: str, **changes: object) -> Receipt:
    asked = replace(delivery(home, name, "r1"), **changes)  # type: ignore[arg-type]
    return Receipt.sign(KEYS[name], asked)


def test_a_station_signs_and_it_is_on_record(home: Workspace) -> None:
    asked = delivery(home, "bravo", "r1")
    copy = home.copy_path("r1", "bravo")
    assert asked.copies == (model_digest(open_model(copy)),)
    made = sign(KEYS["bravo"], Delivery.from_bytes(asked.to_bytes()), [copy])
    index = take(home, Receipt.from_bytes(made.to_bytes() + b"\n"), allow_weak_params=True)
    record = home.registry.entry(index).record
    assert record == made.record()
    ((place, path),) = kept(home, "bravo", "r1")
    assert (place, path is not None and path.read_bytes()) == (index, made.to_bytes() + b"\n")
    ledger = home.registry.ledger()
    assert ledger.holding("r1").signers == ["bravo"]
    assert ledger.holding("r1").unsigned == ["alpha"]
    assert facts(ledger) == replayed(home.registry.entries())
    with pytest.raises(Refused, match="has not signed for"):
        delivery(home, "bravo", "r1")
    with pytest.raises(Refused, match="has signed for this copy of r1 already"):
        take(home, made, allow_weak_params=True)
    home.registry.verify()
    path.unlink()
    assert kept(home, "bravo", "r1") == ((index, None),)


def test_nothing_is_signed_that_did_not_come(home: Workspace) -> None:
    asked = delivery(home, "bravo", "r1")
    with pytest.raises(Refused, match="none of those"):
        sign(KEYS["bravo"], asked, [home.copy_path("r1", "alpha")])
    with pytest.raises(Refused, match="none of those"):
        sign(KEYS["bravo"], asked, [])
    assert sign(KEYS["bravo"], asked, [], unseen=asked.copies).delivery == asked


def test_who_was_handed_nothing_signs_for_nothing(home: Workspace) -> None:
    for name, release in (("carol", "r1"), ("nobody", "r1"), ("alpha", "r2")):
        with pytest.raises(Refused):
            delivery(home, name, release)
    with pytest.raises(Refused, match="no round"):
        delivery(home, "alpha", "r1", rounds=True)


def test_every_field_of_a_receipt_counts(home: Workspace) -> None:
    before = home.registry.head()
    theirs = delivery(home, "alpha", "r1")
    cases: dict[str, tuple[Receipt, type[Error]]] = {
        "another registry": (signed(home, "bravo", setup=bytes(32)), InvalidProof),
        "another log": (signed(home, "bravo", head=Head(size=2, root=bytes(32)).to_text()), InvalidLog),
        "a log to come": (signed(home, "bravo", head=Head(size=99, root=bytes(32)).to_text()), InvalidLog),
        "no head": (signed(home, "bravo", head="latest"), MalformedFile),
        "another's copy": (signed(home, "bravo", copies=theirs.copies), Refused),
        "nobody's copy": (signed(home, "bravo", copies=(bytes(32),)), Refused),
        "another release": (signed(home, "bravo", release="r2"), Refused),
        "another's name": (signed(home, "bravo", station="alpha"), InvalidProof),
        "a stranger": (signed(home, "bravo", station="nobody"), Refused),
        "a round": (signed(home, "bravo", rounds=(0,)), Refused),
    }
    for what, (receipt, error) in cases.items():
        with pytest.raises(error):
            take(home, receipt, allow_weak_params=True)
        assert home.registry.head() == before, what
    whole = signed(home, "bravo")
    for proof in (whole.proof[:-1], whole.proof[:-1] + bytes([whole.proof[-1] ^ 1])):
        with pytest.raises(Error):
            take(home, replace(whole, proof=proof), allow_weak_params=True)
    with pytest.raises(Error, match="test-128"):
        take(home, whole)  # a key that can be forged
    assert not (home.root / "receipts").exists() or not list((home.root / "receipts").iterdir())


def test_a_receipt_of_rounds_covers_many(home: Workspace) -> None:
    """Alpha was there in all of four rounds, carol in two of them."""
    state = {"fc.weight": np.random.default_rng(8).normal(size=(64, 64)).astype(np.float32)}
    guard = home.guard(state, length=256)
    sent: dict[str, list[bytes]] = {"alpha": [], "carol": []}
    for number in range(4):
        grown = {name: each + np.float32(number / 8) for name, each in state.items()}
        broadcast = guard.broadcast(grown, f"round {number}")
        for name in ("alpha", "carol") if number % 2 else ("alpha",):
            copy = ModelState.from_arrays(broadcast.outgoing(name))
            sent[name].append(model_digest(copy))
        assert broadcast.close() is not None
    for name, rounds in (("alpha", (0, 1, 2, 3)), ("carol", (1, 3))):
        asked = delivery(home, name, "federation", rounds=True)
        assert (asked.rounds, list(asked.copies)) == (rounds, sent[name])
    early = delivery(home, "alpha", "federation", rounds=True)
    part = replace(early, rounds=(1,), copies=(sent["alpha"][1],))
    take(home, Receipt.sign(KEYS["alpha"], part), allow_weak_params=True)
    asked = delivery(home, "alpha", "federation", rounds=True)
    assert asked.rounds == (0, 2, 3)
    swapped = replace(asked, copies=(asked.copies[1], asked.copies[0], asked.copies[2]))
    with pytest.raises(InvalidProof, match="broadcast 0 is not the one"):
        take(home, Receipt.sign(KEYS["alpha"], swapped), allow_weak_params=True)
    with pytest.raises(Refused, match="has signed for broadcast 1 of federation already"):
        take(home, Receipt.sign(KEYS["alpha"], early), allow_weak_params=True)
    absent = replace(asked, station="carol", rounds=(0,), copies=(sent["alpha"][0],))
    with pytest.raises(InvalidProof, match="carol was sent"):
        take(home, Receipt.sign(KEYS["carol"], absent), allow_weak_params=True)
    late = replace(asked, rounds=(0, 2, 9))
    with pytest.raises(Refused, match="no broadcast 9"):
        take(home, Receipt.sign(KEYS["alpha"], late), allow_weak_params=True)
    take(home, sign(KEYS["alpha"], asked, [], unseen=sent["alpha"]), allow_weak_params=True)
    assert home.registry.ledger().holding("federation").signers == ["alpha"]
    assert home.registry.verify() == home.head


@pytest.mark.parametrize(
    "wrong",
    [
        {"copies": ()},
        {"copies": (bytes(32), bytes(32))},
        {"copies": (bytes(31),)},
        {"rounds": (1, 0), "copies": (bytes(32), b"x" * 32)},
        {"rounds": (0, 0), "copies": (bytes(32), b"x" * 32)},
        {"rounds": (0,), "copies": (bytes(32), b"x" * 32)},
        {"rounds": (-1,)},
        {"station": ""},
        {"rounds": tuple(range(COPIES_LIMIT + 1)), "copies": (bytes(32),) * (COPIES_LIMIT + 1)},
    ],
)
def test_what_is_no_receipt(wrong: dict[str, object]) -> None:
    whole = {"station": "alpha", "release": "r1", "rounds": (), "copies": (bytes(32),)}
    assert ReceiptRecord(**whole, receipt=bytes(32))  # type: ignore[arg-type]
    with pytest.raises(MalformedFile):
        ReceiptRecord(**(whole | wrong), receipt=bytes(32))  # type: ignore[arg-type]
    with pytest.raises(MalformedFile):
        Delivery(**(whole | wrong), setup=bytes(32), head="h")  # type: ignore[arg-type]


def test_the_largest_receipt_is_an_entry() -> None:
    """512 rounds with large numbers fit into the bytes that an entry may have."""
    record = ReceiptRecord(
        station="a" * 64,
        release="r" * 64,
        rounds=tuple(range((1 << 40) - COPIES_LIMIT, 1 << 40)),
        copies=(bytes(32),) * COPIES_LIMIT,
        receipt=bytes(32),
    )
    data = Entry(at="2026-01-31T12:00:00Z", record=record).to_bytes()
    assert Entry.from_bytes(data).record == record


@given(data=st.binary(max_size=200), cut=st.integers(0, 900), put=st.binary(max_size=4))
def test_whatever_is_read_is_of_the_same_bytes_or_an_error_of_ours(data: bytes, cut: int, put: bytes) -> None:
    asked = Delivery(
        station="alpha", release="r1", rounds=(3,), copies=(bytes(32),), setup=bytes(32), head="h"
    )
    made = Receipt(delivery=asked, proof=b"proof")
    kinds: list[tuple[Callable[[bytes], Delivery | Receipt], bytes]] = [
        (Delivery.from_bytes, asked.to_bytes()),
        (Receipt.from_bytes, made.to_bytes()),
    ]
    for read, whole in kinds:
        for each in (data, whole[:cut] + put + whole[cut + len(put) :]):
            try:
                found = read(each)
            except Error:
                continue
            assert found.to_bytes() == each.removesuffix(b"\n")


class TestJudge:
    """A receipt beside the evidence: the evidence itself is as it was."""

    POLICY = Policy(min_length=64, accept_weak_credentials=True)

    def case(self, home: Workspace) -> tuple[Receipt, bytes]:
        receipt = signed(home, "bravo")
        take(home, receipt, allow_weak_params=True)
        found = home.trace(home.copy_path("r1", "bravo"))
        assert found.named == ("bravo",)
        return receipt, found.evidence.to_bytes()

    def test_the_accused_signed(self, home: Workspace, tmp_path: Path) -> None:
        receipt, evidence = self.case(home)
        write_export(home.registry, tmp_path / "export")
        strict = replace(self.POLICY, require_receipt=True)
        found = zktrace.judge(
            evidence,
            head=home.head,
            policy=strict,
            receipts=[receipt],
            registry=tmp_path / "export",
        )
        said = found.steps[3].checked
        assert "bravo signed for a copy of r1" in said
        assert "the suspect is the very copy that bravo signed for" in said
        assert "the receipt of bravo is on record (entry 7)" in said
        assert any("is of this log, by the exported registry" in fact for fact in said)
        alone = zktrace.judge(evidence, head=home.head, policy=strict, receipts=[receipt.to_bytes()])
        assert any("no registry was given" in fact for fact in alone.unchecked)
        with pytest.raises(EvidenceRejected, match=r"step 4.*none was given"):
            zktrace.judge(evidence, head=home.head, policy=strict)
        without = zktrace.judge(evidence, head=home.head, policy=self.POLICY)
        assert any("no receipt that it signed was given" in fact for fact in without.unchecked)

    def test_a_receipt_that_does_not_hold_is_a_rejection(self, home: Workspace) -> None:
        receipt, evidence = self.case(home)
        said = receipt.delivery
        forged = Receipt.sign(KEYS["alpha"], said)
        elsewhere = Receipt.sign(KEYS["bravo"], replace(said, setup=bytes(32)))
        fork = Receipt.sign(
            KEYS["bravo"], replace(said, head=Head(size=home.head.size - 1, root=bytes(32)).to_text())
        )
        export = [each.to_bytes() for each in home.registry.entries()]
        for wrong, given_ in ((forged, {}), (elsewhere, {}), (fork, {"export": export})):
            with pytest.raises(EvidenceRejected) as caught:
                court_judge(
                    evidence,
                    head=home.head,
                    policy=self.POLICY,
                    receipts=[wrong],
                    **given_,  # type: ignore[arg-type]
                )
            assert caught.value.step == 4
        other = Receipt.sign(KEYS["alpha"], replace(said, station="alpha"))
        found = zktrace.judge(evidence, head=home.head, policy=self.POLICY, receipts=[other])
        assert any("it is not of this case" in fact for fact in found.unchecked)
        strange = Receipt.sign(KEYS["bravo"], replace(said, copies=(bytes(32),)))
        found = zktrace.judge(evidence, head=home.head, policy=self.POLICY, receipts=[strange])
        assert not any("very copy" in fact for fact in found.steps[3].checked)
