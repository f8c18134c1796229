"""Records, the log, the registry over its stores, heads and proofs."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.conftest import Opener
from registry.reference import facts
from registry.small import add_station, dispatch, fill, investigation, release, request, revocation, setup
from zktrace.errors import Error, InputError, InvalidLog, InvalidProof, MalformedFile, Refused
from zktrace.primitives import merkle
from zktrace.registry.enrolling import enrolment
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Extension, Head, Inclusion, ProvenEntry, verify_consistency
from zktrace.registry.records import Entry, Record, RevocationRecord
from zktrace.registry.registry import Registry
from zktrace.registry.stores.contract import Transaction
from zktrace.registry.stores.memory import MemoryStore
from zktrace.registry.stores.sql import SqlStore

OFFER = bytes(32)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FULL = fill(Registry(MemoryStore(), clock=lambda: NOON))
ENTRIES = FULL.entries()


def put(store: MemoryStore, *data: bytes) -> None:
    """Entries that no registry would have written."""
    with store.transaction() as change:
        for each in data:
            change.append(len(change.read(0)), each)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.record.kind)
def test_every_record_comes_back(entry: Entry) -> None:
    assert Entry.from_bytes(entry.to_bytes()) == entry


@given(st.sampled_from(ENTRIES), st.data())
def test_a_changed_entry_is_another_entry_or_none(entry: Entry, data: st.DataObject) -> None:
    text = bytearray(entry.to_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255).filter(lambda value: value != text[at]))
    try:
        found = Entry.from_bytes(bytes(text))
    except MalformedFile:
        return
    assert found != entry
    assert found.to_bytes() == text


def test_the_same_story_on_every_store(opener: Opener) -> None:
    registry = fill(Registry(opener(), clock=lambda: NOON))
    assert [each.record for each in registry.entries()] == [each.record for each in ENTRIES]
    assert {each.at for each in registry.entries()} == {"2026-01-31T12:00:00Z"}
    expected = fill(Registry(MemoryStore(), clock=lambda: NOON)).head()
    assert registry.head() == Registry(opener()).head() == registry.verify() == expected
    assert Registry(opener()).ledger().remaining == Fraction(9, 1000)


def test_a_time_is_written_in_utc() -> None:
    there = timezone(timedelta(hours=2))
    registry = Registry(MemoryStore(), clock=lambda: datetime(2026, 7, 1, 1, 30, tzinfo=there))
    registry.add(setup())
    assert registry.entry(0).at == "2026-06-30T23:30:00Z"


def test_what_is_refused_leaves_no_trace(opener: Opener) -> None:
    registry = Registry(opener())
    registry.add(setup())
    head = registry.head()
    for wrong in (
        setup(),
        release(registry.ledger(), "v1", ("output",)),
        dispatch("alpha"),
        investigation(0),
    ):
        with pytest.raises(Refused):
            registry.add(wrong)
    with pytest.raises(ZeroDivisionError):
        registry.add(lambda ledger: 1 // 0)  # type: ignore[arg-type,return-value]
    assert registry.head() == Registry(opener()).head() == head
    assert add_station(registry, "alpha") == 1


@pytest.mark.parametrize("text", ["", "x" * 101, "a\nb", "\ud800"])
def test_a_record_that_could_not_be_read_again_is_not_written(text: str) -> None:
    registry = fill(Registry(MemoryStore()))
    with pytest.raises(InputError):
        registry.add(RevocationRecord(station="alpha", reason=text))
    assert registry.verify() == registry.head()
    assert registry.head().size == len(ENTRIES)


def test_a_source_sees_the_log_under_the_lock(opener: Opener) -> None:
    """Between two registries on one log, the second decides on what the first has written."""
    one, two = Registry(opener()), Registry(opener())
    one.add(setup())
    assert two.ledger().by_row == []
    add_station(one, "alpha")
    seen: list[list[str]] = []

    def source(ledger: Ledger) -> Record:
        seen.append(list(ledger.by_row))
        return release(ledger)

    assert two.add(source) == 2
    assert seen == [["alpha"]]
    assert one.head() == two.head()


class Breaking(MemoryStore):
    """Loses every transaction at its end while `broken`."""

    broken = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as change:
            yield change
            if self.broken:
                raise Refused("the connection was lost")


def test_what_a_store_lost_is_not_remembered() -> None:
    store = Breaking()
    registry = Registry(store)
    registry.add(setup())
    head = registry.head()
    store.broken = True
    with pytest.raises(Refused, match="was lost"):
        add_station(registry, "alpha")
    assert registry.head() == head
    assert registry.ledger().by_row == []
    store.broken = False
    assert add_station(registry, "beta") == 1
    assert registry.ledger().by_row == ["beta"]


def test_a_ledger_is_the_callers_own() -> None:
    registry = fill(Registry(MemoryStore()))
    ledger = registry.ledger()
    before = facts(ledger)
    ledger.releases.clear()
    ledger.by_row[:].clear()
    ledger.apply(Entry(at="2026-01-31T12:00:00Z", record=dispatch("alpha")))
    assert ledger.size == 11
    assert facts(registry.ledger()) == before
    for view in (ledger.stations, ledger.by_row, ledger.claims, ledger.dispatches, ledger.verdicts):
        assert not hasattr(view, "clear")
        with pytest.raises(TypeError):
            view[0] = None  # type: ignore[index]


def test_a_log_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    """A restored backup under a running process: nothing remembered may be mixed with it."""
    stores = [SqlStore.of_file(tmp_path / name) for name in ("one.db", "two.db")]
    one, two = (Registry(each) for each in stores)
    for registry in (one, two):
        registry.add(setup())
    add_station(one, "alpha")
    add_station(two, "beta")
    add_station(two, "gamma")
    two.ledger()
    two._store = stores[0]
    assert two.entry(1) == one.entry(1)
    with pytest.raises(Refused, match="no entry 2"):
        two.entry(2)
    assert two.ledger().by_row == ["alpha"]
    assert add_station(two, "beta") == 2
    assert one.verify() == two.head()


def test_a_foreign_entry_is_found_by_every_reader() -> None:
    for data in (b"nonsense", ENTRIES[1].to_bytes(), ENTRIES[0].to_bytes() + b" "):
        store = MemoryStore()
        put(store, *(each.to_bytes() for each in ENTRIES), data)
        registry = Registry(store)
        for call in (registry.head, registry.ledger, registry.verify):
            with pytest.raises(InvalidLog, match="entry 10: "):
                call()
        with pytest.raises(InvalidLog, match="entry 10: "):
            registry.add(revocation("alpha"))
        assert len(store.read()) == 11


def test_an_empty_log_does_not_verify() -> None:
    with pytest.raises(InvalidLog, match="empty"):
        Registry(MemoryStore()).verify()


def test_every_entry_is_proved_under_every_head_it_is_in() -> None:
    leaves = [merkle.leaf_hash(each.to_bytes()) for each in ENTRIES]
    for size in range(1, len(ENTRIES) + 1):
        head = Head.of_leaves(leaves[:size])
        for index in range(size):
            proof = FULL.inclusion(index, size)
            proof.verify(ENTRIES[index].to_bytes(), head)
            assert Inclusion.from_json(proof.as_json()) == proof
            with pytest.raises(InvalidProof, match="inclusion"):
                proof.verify(ENTRIES[index - 1].to_bytes() if size > 1 else b"", head)
            with pytest.raises(InvalidProof, match="for a log of"):
                proof.verify(ENTRIES[index].to_bytes(), Head(size=size + 1, root=head.root))
    with pytest.raises(Refused):
        FULL.inclusion(10)
    with pytest.raises(Refused):
        FULL.inclusion(0, 11)
    with pytest.raises(Refused):
        FULL.inclusion(3, 3)


def test_the_log_extends_each_of_its_heads() -> None:
    leaves = [merkle.leaf_hash(each.to_bytes()) for each in ENTRIES]
    for size in range(len(ENTRIES) + 1):
        old = Head.of_leaves(leaves[:size])
        verify_consistency(old, FULL.head(), FULL.consistency(size))
        proof = Extension.from_bytes(FULL.prove_extends(old).to_bytes())
        proof.verify(old, FULL.head())
        assert FULL.verify(extends=old) == FULL.head()
        wrong = replace(old, root=bytes(32))
        with pytest.raises(InvalidLog):
            verify_consistency(wrong, FULL.head(), FULL.consistency(size))
        with pytest.raises(InvalidLog):
            FULL.prove_extends(wrong)
        with pytest.raises(InvalidProof, match="the heads have"):
            proof.verify(replace(old, size=size + 1), FULL.head())
        with pytest.raises(InvalidLog, match="not those of the head"):
            FULL.verify(extends=wrong)
    with pytest.raises(InvalidLog, match="entries are missing"):
        FULL.verify(extends=Head(size=11, root=bytes(32)))
    with pytest.raises(Refused):
        FULL.consistency(11)


def test_a_head_is_one_line() -> None:
    head = FULL.head()
    assert head.to_text() == f"zkt-head-v1:10:{head.root.hex()}"
    assert Head.from_text(head.to_text()) == head


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text.upper(),
        lambda text: text.replace(":10:", ":010:"),
        lambda text: text.replace(":10:", ":-1:"),
        lambda text: text.replace(":10:", ":\u0661:"),
        lambda text: text.replace(":10:", ":" + "9" * 13 + ":"),
        lambda text: text.replace("v1", "v2"),
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: "",
    ],
)
def test_nothing_else_is_a_head(change: Callable[[str], str]) -> None:
    with pytest.raises(MalformedFile, match="not a head"):
        Head.from_text(change(FULL.head().to_text()))


def test_a_proven_entry_comes_back_and_holds() -> None:
    for index in range(len(ENTRIES)):
        proven = FULL.prove(index)
        data = proven.to_bytes()
        assert ProvenEntry.from_bytes(data) == ProvenEntry.from_bytes(data + b"\n") == proven
        proven.verify(FULL.head())
        with pytest.raises(InvalidProof):
            proven.verify(replace(FULL.head(), root=bytes(32)))


@given(st.integers(0, 9), st.data())
def test_a_changed_proof_is_refused_or_does_not_hold(index: int, data: st.DataObject) -> None:
    text = bytearray(FULL.prove(index).to_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255).filter(lambda value: value != text[at]))
    with pytest.raises(Error):
        ProvenEntry.from_bytes(bytes(text)).verify(FULL.head())


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"index": 0, "size": 1},
        {"index": 0, "size": 1, "path": [], "more": 1},
        {"index": True, "size": 2, "path": []},
        {"index": 1, "size": 1, "path": []},
        {"index": -1, "size": 1, "path": []},
        {"index": 0, "size": 2**41, "path": []},
        {"index": 0, "size": 1, "path": "ab"},
        {"index": 0, "size": 1, "path": ["ab"]},
        {"index": 0, "size": 1, "path": ["A" * 64]},
        {"index": 0, "size": 1, "path": [None]},
        {"index": 0, "size": 1, "path": ["a" * 64] * 65},
    ],
)
def test_nothing_else_is_an_inclusion(value: object) -> None:
    with pytest.raises(MalformedFile, match="inclusion: "):
        Inclusion.from_json(value)


class Slow(MemoryStore):
    """A store whose first transaction waits until somebody lets it go on, or whose transactions end badly."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = Event(), Event()
        self.transactions = 0
        self.lost = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.transactions += 1
        with super().transaction() as change:
            if self.transactions == 2:  # the first after the setup
                self.begun.set()
                assert self.go_on.wait(30)
            yield change
            if self.lost:
                raise Refused("the database is gone")


def waited_for(registry: Registry, count: int) -> None:
    while len(registry._waiting) < count:
        sleep(0.001)


def added_by_threads(registry: Registry, store: Slow, sources: list[Record]) -> list[int | Error]:
    """The first goes ahead; the others wait meanwhile, in this order."""

    def add(source: Record) -> int | Error:
        try:
            return registry.add(source)
        except Error as error:
            return error

    with ThreadPoolExecutor(len(sources)) as pool:
        first = pool.submit(add, sources[0])
        assert store.begun.wait(30)
        others = []
        for at, source in enumerate(sources[1:], 1):
            others.append(pool.submit(add, source))
            waited_for(registry, at)
        store.go_on.set()
        return [each.result(30) for each in (first, *others)]


def test_records_that_wait_go_in_together_and_each_is_told_of_its_own() -> None:
    store = Slow()
    registry = Registry(store, clock=lambda: NOON)
    registry.add(setup())
    stations = [enrolment("abcd"[at], at, request("abcd"[at], OFFER), bits=128) for at in range(4)]
    sources = [stations[0], stations[1], dispatch("nobody"), stations[1], stations[2]]
    found = added_by_threads(registry, store, sources)
    assert found[:2] == [1, 2]
    assert "no station" in str(found[2])
    assert "enrolled already" in str(found[3])
    assert found[4] == 3
    assert store.transactions == 3  # the setup, the first, and all others
    assert [each.record for each in registry.entries()] == [setup(), *stations[:3]]
    assert registry.verify() == registry.head()
    assert registry.add(stations[3]) == 4


def test_where_a_transaction_is_lost_nothing_of_it_is_there_and_all_are_told() -> None:
    store = Slow()
    registry = Registry(store, clock=lambda: NOON)
    registry.add(setup())
    stations = [enrolment("abc"[at], at, request("abc"[at], OFFER), bits=128) for at in range(3)]
    store.lost = True
    found = added_by_threads(registry, store, [dispatch("nobody"), *stations])
    assert "no station" in str(found[0])
    assert [str(each) for each in found[1:]] == ["the database is gone"] * 3
    store.lost = False
    assert registry.ledger().size == 1
    assert [registry.add(each) for each in stations] == [1, 2, 3]


class Held(MemoryStore):
    """A store whose next read is held up, after it has looked, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.hold = 0, False
        self.looked, self.let_go = Event(), Event()

    def read(self, start: int = 0) -> list[bytes]:
        found = super().read(start)
        self.reads += 1
        if self.hold:
            self.hold = False
            self.looked.set()
            assert self.let_go.wait(60)
        return found


def test_of_many_who_ask_at_a_time_one_reads_and_nobody_gets_what_was_read_before_he_asked() -> None:
    store = Held()
    registry, other = Registry(store), Registry(store)
    fill(other)
    size = registry.ledger().size
    store.reads, store.hold = 0, True
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(registry.ledger)
        assert store.looked.wait(60)
        other.add(lambda ledger: release(ledger, name="v2"))
        before, numbers = store.reads, asked(registry)
        later = [pool.submit(registry.ledger) for _ in range(8)]
        while asked(registry) < numbers + 8:
            sleep(0.01)
        store.let_go.set()
        assert first.result().size == size
        assert {each.result().size for each in later} == {size + 1}
    assert store.reads == before + 1


def asked(registry: Registry) -> int:
    """How many numbers were given out."""
    return int(registry._asks.__reduce__()[1][0])
