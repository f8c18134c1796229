"""The state that is put aside: the same as a replay of everything, or it counts as missing."""

import hashlib
import json
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache as remembered
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.conftest import Opener
from registry.reference import facts, replayed
from registry.small import (
    CUSTODY,
    add_station,
    dispatch,
    fill,
    investigation,
    release,
    request,
    revocation,
    setup,
    verdict,
)
from zktrace.errors import InvalidLog, MalformedFile, Refused
from zktrace.primitives.canonical import to_json
from zktrace.registry import cache
from zktrace.registry.cache import decoded, due, encoded
from zktrace.registry.enrolling import enrolment
from zktrace.registry.export import read_export, write_export
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import PLACE, Entry, Record, record_digest
from zktrace.registry.registry import Registry
from zktrace.registry.stores.contract import Transaction
from zktrace.registry.stores.memory import MemoryStore
from zktrace.registry.workspace import Home

NAMES = ("alpha", "beta", "gamma", "delta", "Alpha", "de1ta")
RELEASES = ("v1", "v2", "V1")
TIMES = ("2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z")
OFFER = record_digest(setup())

Step = tuple[str, int, int]
STEPS = st.tuples(
    st.sampled_from(("enrol", "release", "dispatch", "dispatch", "revoke", "reserve", "look", "verdict")),
    st.integers(0, 5),
    st.integers(0, 2),
)


@pytest.fixture(autouse=True)
def every_entry_is_worth_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LEAST", 1)


@remembered
def enrolled(name: str, row: int, key: str) -> Record:
    return enrolment(name, row, request(key, OFFER), bits=setup().identity_bits)


def record_of(step: Step, ledger: Ledger) -> Record:
    """What a step would put on record; the rules may refuse it."""
    kind, one, two = step
    stations, last = len(ledger.by_row), ledger.offers[PLACE][-1].promise
    word = ("certified-attribute", "uncertified-lead", "no-certified-evidence")[two]
    budget = Fraction(0 if one == 5 else 1, 1000 + one)
    made: dict[str, Callable[[], Record]] = {
        "enrol": lambda: enrolled(NAMES[one], stations, NAMES[(one + two // 2) % len(NAMES)]),
        "release": lambda: release(ledger, RELEASES[two]),
        "dispatch": lambda: dispatch(NAMES[one], RELEASES[two]),
        "revoke": lambda: revocation(NAMES[one]),
        "reserve": lambda: CUSTODY.reservation(PLACE, last.first + last.count, 2),
        "look": lambda: investigation(stations, budget, release=RELEASES[two]),
        "verdict": lambda: verdict(
            max(ledger.size - 1 - one % 2, 0), word, () if two == 2 else (NAMES[one],)
        ),
    }
    return made[kind]()


def story(steps: Sequence[Step]) -> list[Entry]:
    """The entries of those steps that the rules allow, after a setup."""
    ledger, entries = Ledger(), []
    for at, step in enumerate([None, *steps]):
        record = setup() if step is None else record_of(step, ledger)
        entry = Entry(at=TIMES[at % 2], record=record)
        try:
            ledger.apply(entry)
        except Refused:
            continue
        entries.append(entry)
    return entries


def folded(entries: Sequence[Entry]) -> Ledger:
    ledger = Ledger()
    for each in entries:
        ledger.apply(each)
    return ledger


def outcome(ledger: Ledger, step: Step) -> str:
    """What the rules say to a step."""
    try:
        ledger.check(record_of(step, ledger))
    except Refused as error:
        return str(error)
    return ""


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=40), st.integers(0, 40), st.lists(STEPS, max_size=10))
def test_a_state_that_was_put_aside_goes_on_as_a_replay_does(
    steps: list[Step], cut: int, further: list[Step]
) -> None:
    entries = story(steps)
    cut = min(cut, len(entries) - 1) + 1
    ledger = decoded(b"".join(encoded(folded(entries[:cut]))))
    assert facts(ledger) == replayed(entries[:cut])
    early = ledger.copy()
    for each in entries[cut:]:
        ledger.apply(each)
    assert facts(ledger) == replayed(entries)
    assert facts(early) == replayed(entries[:cut])
    assert encoded(ledger) == encoded(folded(entries))
    for step in further:
        assert outcome(ledger, step) == outcome(ledger.copy(), step) == outcome(folded(entries), step)


def long_story() -> list[Entry]:
    """Enough entries that most are not compared with the log: 46."""
    steps: list[Step] = [("enrol", i, 0) for i in range(4)] + [("release", 0, i) for i in range(2)]
    steps += [("dispatch", i % 4, i % 2) for i in range(30)] + [("revoke", 1, 0), ("reserve", 0, 0)]
    return story(
        [*steps, *[("look", 1, 0), ("verdict", 0, 0)] * 2, ("look", 2, 1), ("look", 5, 0), *steps[-3:]]
    )


LONG = long_story()


def test_the_long_story_has_everything() -> None:
    assert {each.record.kind for each in LONG} >= {"setup", "reservation", "enrolment", "release", "dispatch"}
    assert {each.record.kind for each in LONG} >= {"revocation", "investigation", "verdict"}
    assert len(LONG) > 2 * cache.SAMPLE


class Counting(MemoryStore):
    """Remembers where it was read from."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        super().__init__()
        self.starts: list[int] = []
        self.picked: list[int] = []
        with super().transaction() as change:
            for place, each in enumerate(entries):
                change.append(place, each.to_bytes())

    def read(self, start: int = 0) -> list[bytes]:
        self.starts.append(start)
        return super().read(start)

    def pick(self, places: Sequence[int]) -> list[bytes]:
        self.picked += places
        return super().pick(places)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as change:
            read = change.read
            change.read = lambda start: self.starts.append(start) or read(start)  # type: ignore[method-assign,func-returns-value]
            yield change


def put_aside(path: Path, entries: Sequence[Entry]) -> None:
    cache.save(path, folded(entries))


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "ledger"
    put_aside(path, LONG[:40])
    store = Counting(LONG)
    registry = Registry(store, cache=path)
    assert facts(registry.ledger()) == replayed(LONG)
    assert store.starts == [39]
    assert len(store.picked) == cache.SAMPLE
    assert {0, 39} <= set(store.picked)
    registry.head()
    registry.add(revocation("gamma"))
    registry.prove(7)
    registry.entry(7)
    # an addition looks before it takes the lock and once more when it has it
    assert store.starts == [39, len(LONG) - 1, len(LONG) - 1, len(LONG) - 1, len(LONG)]
    assert store.picked[cache.SAMPLE :] == [7, 7]
    again = Counting()
    again._entries = store._entries
    assert Registry(again, cache=path).head() == registry.verify()
    assert again.starts == [len(LONG)]


def test_a_record_that_is_refused_makes_nobody_read_again(tmp_path: Path) -> None:
    store = Counting(LONG)
    registry = Registry(store, cache=tmp_path / "ledger")
    registry.ledger()
    with pytest.raises(Refused, match="no station"):
        registry.add(dispatch("nobody"))
    assert facts(registry.ledger()) == replayed(LONG)
    assert store.starts == [0, len(LONG) - 1, len(LONG) - 1, len(LONG) - 1]


FILES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-1],
    "halved": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"\0",
    "another version": lambda data: signed(data[:-32].replace(b"zkt-ledger-v2", b"zkt-ledger-v3")),
    "another budget without a checksum": lambda data: data.replace(b'"spent":"', b'"spent":"00'),
    "a header that is none": lambda data: signed(data[:-32].replace(b'"size":', b'"sise":')),
    "another root": lambda data: signed(swapped_root(data[:-32])),
    "a column too short": lambda data: signed(data[:-40]),
    "a column too many": lambda data: signed(data[:-32].replace(b'"columns":[', b'"columns":[1,')),
    "columns cut elsewhere": lambda data: signed(moved(data[:-32])),
    "text that is none": lambda data: signed(data[:-32].replace(b"alpha", b"\xff\xfe\xfd\xfc\xfb")),
    "of a longer log": lambda _: b"".join(encoded(folded([*LONG, again(LONG)]))),
    "of another log, a shorter one": lambda _: b"".join(encoded(folded(story([("enrol", 3, 0)] * 50)))),
    "of another setup": lambda _: b"".join(encoded(other_setup())),
}


def signed(data: bytes) -> bytes:
    """With the checksum that it should have."""
    return data + hashlib.sha256(data).digest()


def moved(data: bytes) -> bytes:
    """One byte of the second column, which is of numbers, goes to the first."""
    header = json.loads(data.split(b"\n")[1])
    one, two, *rest = header["columns"]
    changed = header | {"columns": [one + 1, two - 1, *rest]}
    return data.replace(to_json(header), to_json(changed))


def swapped_root(data: bytes) -> bytes:
    root = folded(LONG).root.hex().encode()
    return data.replace(root, root[::-1])


def again(entries: Sequence[Entry]) -> Entry:
    """One more entry that the rules allow."""
    assert outcome(folded(entries), ("dispatch", 0, 0)) == ""
    return Entry(at=TIMES[0], record=dispatch("alpha", "v1"))


def other_setup() -> Ledger:
    """The same story after another beginning; releases know what came before, so without them."""
    ledger = Ledger()
    for each in LONG:
        if each.record.kind in ("setup", "enrolment", "reservation", "revocation"):
            at = "2020-01-01T00:00:00Z" if each.record.kind == "setup" else each.at
            ledger.apply(Entry(at=at, record=each.record))
    return ledger


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_of_this_log_is_made_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger"
    put_aside(path, LONG)
    good = path.read_bytes()
    path.write_bytes(FILES[name](good))
    assert path.read_bytes() != good
    store = Counting(LONG)
    registry = Registry(store, cache=path)
    assert facts(registry.ledger()) == replayed(LONG)
    assert store.starts[-1] == 0  # all of it
    assert path.read_bytes() == good
    assert facts(Registry(Counting(LONG), cache=path).ledger()) == replayed(LONG)


def test_a_log_that_was_set_back_or_forked_is_read_anew(tmp_path: Path) -> None:
    """Whatever the cache was made of, what counts is the log that is there."""
    path = tmp_path / "ledger"
    for size in (1, 2, 20, len(LONG) - 1):
        put_aside(path, LONG)
        assert facts(Registry(Counting(LONG[:size]), cache=path).ledger()) == replayed(LONG[:size])
        put_aside(path, LONG)
        forked = [*LONG[: size - 1], Entry(at="2030-01-01T00:00:00Z", record=LONG[size - 1].record)]
        assert facts(Registry(Counting(forked), cache=path).ledger()) == replayed(forked)
        registry = Registry(Counting(LONG[:size]), cache=path)
        assert registry.head() == registry.verify() == folded(LONG[:size]).head


@settings(max_examples=200)
@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    text = bytearray(b"".join(encoded(folded(LONG))))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255).filter(lambda value: value != text[at]))
    with pytest.raises(MalformedFile):
        decoded(bytes(text))


def test_a_cut_file_is_noticed() -> None:
    text = b"".join(encoded(folded(LONG)))
    for end in range(0, len(text), 97):
        with pytest.raises(MalformedFile):
            decoded(text[:end])


def test_a_place_that_cannot_be_written_or_read_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    (tmp_path / "folder" / "ledger").mkdir(parents=True)
    for path in (tmp_path / "file" / "ledger", tmp_path / "folder" / "ledger"):
        registry = Registry(Counting(LONG[:-1]), cache=path)
        assert facts(registry.ledger()) == replayed(LONG[:-1])
        assert registry.add(LONG[-1].record) == len(LONG) - 1
    assert (tmp_path / "file").read_text() == "in the way of a folder"


def test_it_is_for_its_owner_alone_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "ledger"
    registry = fill(Registry(MemoryStore(), cache=path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["ledger"]
    assert facts(decoded(path.read_bytes())) == facts(registry.ledger())


def test_a_file_is_written_when_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LEAST", 256)
    assert not due(0, 255)
    assert due(0, 256)
    assert not due(1_000, 1_255)
    assert due(1_000, 1_256)
    assert not due(256_000, 256_999)
    assert due(256_000, 257_000)


def test_nothing_that_verifies_reads_the_cache(tmp_path: Path) -> None:
    """An entry that somebody with the owner's rights changed where the cache does not look."""
    path, place = tmp_path / "ledger", 10
    put_aside(path, LONG)
    store = Counting(LONG)
    store._entries[place] = Entry(at="2030-01-01T00:00:00Z", record=LONG[place].record).to_bytes()
    registry = Registry(store, cache=path)
    assert registry.head() == folded(LONG).head
    assert place not in store.picked
    assert registry.verify() != registry.head()
    with pytest.raises(InvalidLog, match="are not those"):
        registry.verify(extends=registry.head())
    for call in (registry.entry, registry.prove):
        with pytest.raises(InvalidLog, match="entry 10 is not the one"):
            call(place)
    assert registry.entries()[place].at == "2030-01-01T00:00:00Z"
    assert write_export(registry, tmp_path / "export") == registry.verify()
    assert read_export(tmp_path / "export")[0] == registry.entries()


def test_a_foreign_entry_after_the_cache_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    put_aside(path, LONG)
    store = Counting([*LONG, LONG[1]])
    registry = Registry(store, cache=path)
    for _ in range(2):
        with pytest.raises(InvalidLog, match=f"entry {len(LONG)}: "):
            registry.ledger()
    assert store.starts == [len(LONG) - 1] * 2


def test_every_store_with_a_cache(opener: Opener, tmp_path: Path) -> None:
    """Each entry is added by a registry that begins with the cache."""
    path = tmp_path / "cache" / "ledger"
    Registry(opener(), cache=path).add(setup())
    for name in NAMES[:4]:
        add_station(Registry(opener(), cache=path), name)
    Registry(opener(), cache=path).add(release)
    for name in NAMES[:4] * 2:
        Registry(opener(), cache=path).add(dispatch(name))
    plain = Registry(opener())
    assert facts(Registry(opener(), cache=path).ledger()) == replayed(plain.entries())
    assert decoded(path.read_bytes()).head == plain.verify()


def test_a_workspace_keeps_its_cache(tmp_path: Path) -> None:
    made = Home.create(tmp_path / "ws", title="a federation", carriers=("weight",))
    path = made.root / "cache" / "ledger"
    assert made.keeps(path)
    assert not made.keeps(made.root / "cache")
    made.enrol("alpha", request("alpha", made.offer), allow_weak_params=True)
    assert decoded(path.read_bytes()).head == made.registry.head()
    assert Home.open(made.root).registry.ledger().by_row == ["alpha"]


def test_a_file_that_says_another_sum_was_spent_is_refused() -> None:
    whole = folded(LONG)
    assert whole.spent
    assert decoded(b"".join(encoded(whole))).spent == whole.spent
    forged = Ledger(whole.columns, spent=Fraction(0))
    with pytest.raises(MalformedFile, match="spent"):
        decoded(b"".join(encoded(forged)))
