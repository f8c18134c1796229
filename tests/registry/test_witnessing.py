"""The log of a workspace as strangers see it: it signs one history, whatever database stands there."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from zktrace.errors import CannotTell, InputError, InvalidLog, MalformedFile, Refused
from zktrace.registry.log import Extension, Head
from zktrace.registry.records import PLACE
from zktrace.registry.witnessing import PublicLog, check_same_log, head_of
from zktrace.registry.workspace import Home
from zktrace.transparency.asking import Ask
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import Kind, Verifier
from zktrace.transparency.request import AddCheckpoint
from zktrace.transparency.trust import Trust, TrustedCheckpoint
from zktrace.transparency.witness import Witness, make_signers

ORIGIN = "north.example/gnss"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.create(tmp_path / "ws", title="North", carriers=("weight",))


@pytest.fixture
def log(home: Home) -> PublicLog:
    made = PublicLog(home, clock=lambda: 1000)
    made.make_keys(ORIGIN, (Kind.NOTE, Kind.ML_DSA_COSIGNATURE))
    return made


def keys(log: PublicLog) -> tuple[Verifier, ...]:
    return tuple(each.verifier for each in log.signers())


def new_witness(root: Path, log: PublicLog, kind: Kind = Kind.COSIGNATURE) -> Witness:
    Witness.create(root, make_signers(f"{root.name}.example", (kind,)))
    made = Witness.open(root, clock=lambda: 2000)
    made.watch(keys(log))
    return made


def reach(**witnesses: Witness) -> Callable[[str], Ask]:
    """Asks a witness in this process, by the name in its address."""

    def found(url: str) -> Ask:
        witness = witnesses[url.rpartition("/")[2]]
        return lambda request: witness.answer(request.to_bytes())

    return found


def trust(log: PublicLog, *witnesses: Witness) -> Trust:
    known = tuple(each.signers[0].verifier for each in witnesses)
    return Trust(logs=keys(log), witnesses=known, quorum=len(known))


def test_a_checkpoint_is_the_head_of_the_registry(home: Home, log: PublicLog) -> None:
    first = log.sign()
    opened = trust(log).open(first.to_bytes())
    assert head_of(opened.checkpoint) == home.registry.head()
    assert opened.signed == (ORIGIN, ORIGIN)  # with either key
    assert log.sign() == first  # nothing was added: nothing is signed again
    home.reserve(PLACE, 3)
    assert LogCheckpoint.from_text(log.sign().text).size == 2
    for path in (log.keys_path, home.root / "log" / "checkpoint"):
        assert path.stat().st_mode & 0o777 == 0o600
        assert home.keeps(path)


def test_a_witness_of_two_keys_is_asked_as_one(log: PublicLog, tmp_path: Path) -> None:
    kinds = (Kind.COSIGNATURE, Kind.ML_DSA_COSIGNATURE)
    Witness.create(tmp_path / "one", make_signers("one.example", kinds))
    witness = Witness.open(tmp_path / "one", clock=lambda: 2000)
    witness.watch(keys(log))
    both = tuple(each.verifier for each in witness.signers)
    for key in both:
        log.add_witness(key)
    answer = witness.answer(log.request("one.example").to_bytes())
    note, found = log.take("one.example", answer.body)
    assert found.signature is not None
    assert all(any(key.made(each) for each in note.signatures) for key in both)
    opened = Trust(logs=keys(log), witnesses=both, quorum=1).open(note.to_bytes())
    assert [(each.name, each.at) for each in opened.witnesses] == [("one.example", 2000)]
    assert log.request("one.example").old == 1


def test_witnesses_cosign_and_entries_are_proved(home: Home, log: PublicLog, tmp_path: Path) -> None:
    one, two = (
        new_witness(tmp_path / "one", log),
        new_witness(tmp_path / "two", log, Kind.ML_DSA_COSIGNATURE),
    )
    for each in (one, two):
        log.add_witness(each.signers[0].verifier, f"http://{each.root.name}")
    assert [each.url for each in log.witnesses()] == ["http://one", "http://two"]
    for size in (1, 2, 3):
        note, found = log.cosign(reach=reach(one=one, two=two))
        assert [(each.at, each.reason) for each in found] == [(2000, ""), (2000, "")]
        assert trust(log, one, two).open(note.to_bytes()).checkpoint.size == size
        home.reserve(PLACE, 1)
    for index in range(3):
        proof = log.proof(index)
        assert proof.verify(trust(log, one, two)).checkpoint.size == 3
        assert proof.extra == home.registry.entry(index).to_bytes()
    with pytest.raises(Refused, match="no entry 3"):
        log.proof(3)


def test_what_one_witness_lacks_the_others_do_not(home: Home, log: PublicLog, tmp_path: Path) -> None:
    one, two = new_witness(tmp_path / "one", log), new_witness(tmp_path / "two", log)
    for each in (one, two):
        log.add_witness(each.signers[0].verifier, f"http://{each.root.name}")
    shutil.rmtree(two.root / "logs")
    (two.root / "logs").mkdir()
    note, found = log.cosign(reach=reach(one=one, two=two))
    assert [each.reason for each in found] == ["", "it does not watch this log"]
    two.watch(keys(log))
    note, found = log.cosign(reach=reach(one=one, two=two))
    assert trust(log, one, two).open(note.to_bytes()).checkpoint.size == 1


def test_a_witness_is_asked_by_files(home: Home, log: PublicLog, tmp_path: Path) -> None:
    one = new_witness(tmp_path / "one", log)
    log.add_witness(one.signers[0].verifier)
    _, found = log.cosign()
    assert "asked by files" in found[0].reason
    for size in (1, 2):
        request = log.request("one.example")
        assert request.old == size - 1
        answer = one.answer(AddCheckpoint.from_bytes(request.to_bytes()).to_bytes())
        note, taken = log.take("one.example", answer.body)
        assert taken.at == 2000
        assert trust(log, one).open(note.to_bytes()).checkpoint.size == size
        home.reserve(PLACE, 1)
    assert log.request("one.example", old=1).old == 1
    with pytest.raises(Refused, match="never had 9"):
        log.request("one.example", old=9)
    with pytest.raises(Refused, match="no witness"):
        log.request("two.example")


def test_a_log_that_was_put_back_signs_nothing(home: Home, log: PublicLog, tmp_path: Path) -> None:
    """Its head would be another of a size that was signed already."""
    home.reserve(PLACE, 1)
    log.sign()
    text = (home.root / "log" / "checkpoint").read_text()
    other = Home.create(tmp_path / "other", title="Another", carriers=("weight",))
    theirs = PublicLog(other)
    shutil.copy(log.keys_path, theirs.keys_path)
    (other.root / "log").mkdir()
    (other.root / "log" / "checkpoint").write_text(text)
    for _ in range(3):  # shorter, as long, longer
        with pytest.raises(InvalidLog, match="would be a fork"):
            theirs.sign()
        other.reserve(PLACE, 1)
    theirs.keys_path.unlink()
    theirs.make_keys("south.example", (Kind.NOTE,))
    with pytest.raises(InvalidLog, match=r"'north\.example/gnss'"):
        theirs.sign()


def test_a_fork_is_told_by_the_witness(home: Home, log: PublicLog, tmp_path: Path) -> None:
    one = new_witness(tmp_path / "one", log)
    log.add_witness(one.signers[0].verifier, "http://one")
    log.cosign(reach=reach(one=one))
    other = Home.create(tmp_path / "other", title="Another", carriers=("weight",))
    theirs = PublicLog(other)
    shutil.copy(log.keys_path, theirs.keys_path)
    theirs.add_witness(one.signers[0].verifier, "http://one")
    for size in (1, 2):
        _, found = theirs.cosign(reach=reach(one=one))
        assert found[0].forked
        assert len(one.disputes()) == size
        other.reserve(PLACE, 1)


def test_two_checkpoints_are_compared(home: Home, log: PublicLog, tmp_path: Path) -> None:
    def opened(note: bytes) -> TrustedCheckpoint:
        return trust(log).open(note)

    old = opened(log.sign().to_bytes())
    home.reserve(PLACE, 1)
    new = opened(log.sign().to_bytes())
    proof = home.registry.prove_extends(head_of(old.checkpoint))
    assert check_same_log(new, old, proof) == (old, new)
    assert check_same_log(old, old, None) == (old, old)
    with pytest.raises(CannotTell, match="zktrace log prove --since"):
        check_same_log(old, new, None)
    for wrong in (Extension(old=1, new=2, path=()), replace(proof, path=(bytes(32),))):
        with pytest.raises(InvalidLog):
            check_same_log(old, new, wrong)
    lie = LogCheckpoint(origin=ORIGIN, size=1, root=bytes(32))
    fork = replace(old, checkpoint=lie)
    with pytest.raises(InvalidLog, match="a fork"):
        check_same_log(old, fork, None)
    with pytest.raises(CannotTell, match="different names"):
        check_same_log(old, replace(old, checkpoint=replace(lie, origin="south")), None)
    assert head_of(old.checkpoint) == Head(size=1, root=old.checkpoint.root)


def test_what_is_refused(home: Home, log: PublicLog) -> None:
    verifier = make_signers("w.example", (Kind.COSIGNATURE,))[0].verifier
    for url in ("w.example", "file:///etc/passwd", "http://w\nx"):
        with pytest.raises(InputError, match="not the address"):
            log.add_witness(verifier, url)
    with pytest.raises(InputError, match="no witness's"):
        log.add_witness(log.signers()[0].verifier)
    with pytest.raises(Refused, match="exists already"):
        log.make_keys(ORIGIN, (Kind.NOTE,))
    for kinds in ((), (Kind.COSIGNATURE,), (Kind.NOTE, Kind.NOTE)):
        with pytest.raises(InputError, match="another kind"):
            log.make_keys(ORIGIN, kinds)
    with pytest.raises(Refused, match="signed no checkpoint"):
        log.proof(0)
    log.keys_path.chmod(0o644)
    with pytest.raises(Refused, match="others can read it"):
        log.sign()
    log.keys_path.chmod(0o600)
    log.keys_path.write_text("")
    with pytest.raises(MalformedFile):
        log.sign()
    log.keys_path.unlink()
    with pytest.raises(Refused, match="zktrace log key"):
        log.sign()
