"""The exported registry: the same bytes for the same log, and a reader that believes nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.small import fill, revocation
from zktrace.errors import Error, InvalidLog, LimitExceeded, MalformedFile, Refused
from zktrace.primitives import merkle
from zktrace.registry import export
from zktrace.registry.export import export_of, read_export, write_export
from zktrace.registry.log import Head
from zktrace.registry.registry import Registry
from zktrace.registry.stores.memory import MemoryStore

FULL = fill(Registry(MemoryStore()))
LINES = [each.to_bytes() for each in FULL.entries()]


def file_of(lines: list[bytes], head: Head | None = None) -> bytes:
    """An export of any lines, with the head they have unless told otherwise."""
    head = head or Head.of_leaves([merkle.leaf_hash(each) for each in lines])
    return b"\n".join([b"zkt-registry-v1", *lines, head.to_text().encode(), b""])


def test_the_file_is_the_entries_between_format_and_head(tmp_path: Path) -> None:
    head = write_export(FULL, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == file_of(LINES)
    assert read_export(tmp_path / "a") == (FULL.entries(), FULL.head())
    assert head == FULL.head()
    with pytest.raises(Refused, match="exists already"):
        write_export(FULL, tmp_path / "a")
    write_export(FULL, tmp_path / "a", replace=True)


class Watched(MemoryStore):
    """Notes how many entries are read at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[int] = []

    def read(self, start: int = 0) -> list[bytes]:
        found = super().read(start)
        self.counts.append(len(found))
        return found

    def pick(self, places: Sequence[int]) -> list[bytes]:
        found = super().pick(places)
        self.counts.append(len(found))
        return found


def test_the_same_file_costs_a_reader_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE", 3)
    store = Watched()
    registry = fill(Registry(store))
    snapshot, lines = registry.snapshot(), registry.lines()
    store.counts.clear()
    parts = export_of(snapshot)
    first = next(parts) + next(parts)
    registry.add(revocation("alpha"))  # what comes later is not in it
    assert first + b"".join(parts) == file_of(lines)
    assert max(store.counts) == 3


@pytest.mark.parametrize("shorter", [False, True])
def test_a_file_breaks_off_when_another_log_takes_the_place_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shorter: bool
) -> None:
    monkeypatch.setattr(export, "PAGE", 3)
    store = MemoryStore()
    registry = fill(Registry(store))
    parts, lines = export_of(registry.snapshot()), registry.lines()
    come = [next(parts), next(parts)]
    if shorter:
        del store._entries[5:]
    else:
        store._entries[4] = store._entries[5]
    with pytest.raises(InvalidLog):
        come.extend(parts)
    assert file_of(lines).startswith(b"".join(come))
    (tmp_path / "a").write_bytes(b"".join(come))
    with pytest.raises(MalformedFile):
        read_export(tmp_path / "a")


def test_an_older_head_is_extended(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(file_of(LINES))
    old = Head.of_leaves([merkle.leaf_hash(each) for each in LINES[:4]])
    read_export(tmp_path / "a", extends=old)
    with pytest.raises(InvalidLog, match="not those of the head"):
        read_export(tmp_path / "a", extends=Head(size=4, root=bytes(32)))
    (tmp_path / "b").write_bytes(file_of(LINES[:3]))
    with pytest.raises(InvalidLog, match="entries are missing"):
        read_export(tmp_path / "b", extends=old)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", MalformedFile),
        (b"zkt-registry-v1", MalformedFile),
        (b"zkt-registry-v1\n", MalformedFile),
        (b"zkt-registry-v2\n" + file_of(LINES)[16:], MalformedFile),
        (file_of(LINES)[:-1], MalformedFile),
        (file_of(LINES) + b"\n", MalformedFile),
        (file_of(LINES).replace(b"\n", b"\r\n"), MalformedFile),
        (file_of([]), InvalidLog),
        (file_of(LINES[1:]), InvalidLog),
        (file_of(LINES[:-1], FULL.head()), InvalidLog),
        (file_of(LINES, Head(size=10, root=bytes(32))), InvalidLog),
        (file_of([*LINES[:4], LINES[5], LINES[4], *LINES[6:]], FULL.head()), InvalidLog),
        (file_of([*LINES, LINES[0]]), InvalidLog),
        (file_of([*LINES, b"{}"]), InvalidLog),
        (file_of([*LINES, b""]), InvalidLog),
        (file_of([LINES[0], b"x" * 70_000]), MalformedFile),
        (file_of(LINES[:1]).replace(b"zkt-head", b"\xff\xfe-head"), MalformedFile),
    ],
)
def test_any_other_file_is_refused(tmp_path: Path, data: bytes, error: type[Error]) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(error):
        read_export(tmp_path / "a")


def test_sizes_are_bounded_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(file_of(LINES))
    monkeypatch.setattr(export, "ENTRIES_LIMIT", 5)
    with pytest.raises(LimitExceeded, match="more than 5 entries"):
        read_export(tmp_path / "a")
    monkeypatch.setattr(export, "FILE_LIMIT", 100)
    with pytest.raises(LimitExceeded, match="the limit is 100"):
        read_export(tmp_path / "a")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_changed_file_is_believed(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes changed, cut or put in anywhere: an error of ours, never another one, never a pass."""
    good = file_of(LINES)
    start = data.draw(st.integers(0, len(good) - 1))
    stop = data.draw(st.integers(start, min(len(good), start + 40)))
    bad = good[:start] + data.draw(st.binary(max_size=8)) + good[stop:]
    (tmp_path / "a").write_bytes(bad)
    if bad == good:
        assert read_export(tmp_path / "a")[1] == FULL.head()
    else:
        with pytest.raises(Error):
            read_export(tmp_path / "a")
