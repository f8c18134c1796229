"""Files are read within bounds and written whole."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from zktrace.errors import LimitExceeded, Refused
from zktrace.primitives.files import read_bounded, sweep, write_atomic


def test_written_bytes_come_back_with_their_mode(tmp_path: Path) -> None:
    target = tmp_path / "a.key"
    write_atomic(target, b"secret", secret=True)
    assert read_bounded(target, limit=6) == b"secret"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.key"]


def test_the_mode_holds_under_any_umask(tmp_path: Path) -> None:
    for mask, public in ((0o000, 0o666), (0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            write_atomic(tmp_path / f"{mask}.key", b"", secret=True)
            write_atomic(tmp_path / f"{mask}.pub", b"")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{mask}.key").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / f"{mask}.pub").stat().st_mode) == public


def test_an_existing_file_is_kept_unless_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write_atomic(target, b"old")
    with pytest.raises(Refused, match="exists already"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    write_atomic(target, b"new", replace=True)
    assert target.read_bytes() == b"new"


def test_of_many_writers_exactly_one_wins(tmp_path: Path) -> None:
    target = tmp_path / "a"
    barrier = threading.Barrier(8)
    lost: list[int] = []

    def write(i: int) -> None:
        barrier.wait()
        try:
            write_atomic(target, bytes([i]) * 1000)
        except Refused:
            lost.append(i)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lost) == 7
    assert len(set(target.read_bytes())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zktrace.primitives.files.os.fsync", full)
    with pytest.raises(Refused, match="no space left on device"):
        write_atomic(tmp_path / "a", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", ["missing", "folder", "fifo"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: str) -> None:
    target = tmp_path / "x"
    if make == "folder":
        target.mkdir()
    if make == "fifo":
        os.mkfifo(target)
    with pytest.raises(Refused):
        read_bounded(target, limit=10)


def test_a_large_file_is_refused_by_its_size(tmp_path: Path) -> None:
    target = tmp_path / "x"
    with target.open("wb") as handle:
        handle.truncate(1 << 40)  # sparse: reading it would take forever
    with pytest.raises(LimitExceeded, match="1099511627776 bytes, the limit is 10"):
        read_bounded(target, limit=10)


def test_a_name_of_full_length_and_a_name_too_long(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("a" * 255), b"x")
    with pytest.raises(Refused, match="file name too long"):
        write_atomic(tmp_path / ("a" * 256), b"x")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_may_come_in_pieces(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", (piece for piece in (b"ab", memoryview(b"cd"))))
    assert (tmp_path / "a").read_bytes() == b"abcd"


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    command = (
        "import os, signal; from pathlib import Path; from zktrace.primitives import files\n"
        "files._give_name = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"files.write_atomic(Path({str(tmp_path / 'a')!r}), b'x')"
    )
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == -signal.SIGKILL
    (tmp_path / "b").touch()
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path / "b")
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("zktrace.primitives.files.os.link", no_links)
    write_atomic(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    with pytest.raises(Refused, match="exists already"):
        write_atomic(tmp_path / "a", b"y")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_the_name_is_made_durable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr("zktrace.primitives.files.os.fsync", watch)
    write_atomic(tmp_path / "a", b"x")
    assert synced == [False, True]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written"):
        write_atomic(tmp_path / "no" / "a", b"")
