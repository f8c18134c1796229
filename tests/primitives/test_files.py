"""Files are read within bounds and written whole."""

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.forge import scarce_memory
from zktrace.errors import LimitExceeded, Refused
from zktrace.primitives import files
from zktrace.primitives.files import read_bounded, sweep, whole_file, write_atomic


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


def test_a_high_limit_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"small")
    with scarce_memory(64 << 20):
        assert read_bounded(tmp_path / "x", limit=1 << 40) == b"small"


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
    def no_links(source: str, target: str, **folders: object) -> None:
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


# -- somebody else who may write to the folder


def swap(folder: Path, loot: Path) -> None:
    """Put a link to a file of the attacker's in the place of every scratch file."""
    for each in list(folder.glob(".*")):
        each.rename(folder.parent / f"taken{each.name}")
        each.symlink_to(loot)


STEPS = ("fchmod", "write", "fsync", "replace", "link", "named")


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_link_that_is_put_in_place_of_the_file_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, replace: bool
) -> None:
    """The exchange happens right before each step in turn, which a race would only hit now and then."""
    folder, loot = tmp_path / "folder", tmp_path / "loot"
    folder.mkdir()
    loot.touch(0o666)
    old = b"old" if replace else None
    if old:
        (folder / "case.json").write_bytes(old)

    def swapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            swap(folder, loot)
            return real(*args, **named)

        return called

    def pieces() -> Iterator[bytes]:
        if step == "write":
            swap(folder, loot)
        yield b"SECRET ROW"

    if step == "named":
        monkeypatch.setattr(files, "_check_same", swapped(files._check_same))
    elif step != "write":
        monkeypatch.setattr(files.os, step, swapped(getattr(os, step)))
    unreached = step == ("link" if replace else "replace")
    if unreached:
        write_atomic(folder / "case.json", pieces(), secret=True, replace=replace)
        assert (folder / "case.json").read_bytes() == b"SECRET ROW"
        return
    with pytest.raises(Refused, match=r"case.json: cannot be written \(somebody exchanges files"):
        write_atomic(folder / "case.json", pieces(), secret=True, replace=replace)
    assert loot.read_bytes() == b""
    taken = list(tmp_path.glob("taken*"))
    assert taken
    for each in taken:
        assert each.read_bytes() == b""
        assert stat.S_IMODE(each.stat().st_mode) == 0o600


def test_the_folder_may_be_exchanged_too(tmp_path: Path) -> None:
    """The file goes into the folder that was opened, not into whatever stands under its name later."""
    folder, moved = tmp_path / "folder", tmp_path / "moved"
    folder.mkdir()
    with whole_file(folder / "a", secret=True) as handle:
        folder.rename(moved)
        folder.mkdir()
        handle.write(b"secret")
    assert (moved / "a").read_bytes() == b"secret"
    assert list(folder.iterdir()) == []


def test_a_link_that_waits_under_the_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    loot = tmp_path / "loot"
    loot.touch(0o666)
    (tmp_path / "a").symlink_to(loot)
    with pytest.raises(Refused, match="exists already"):
        write_atomic(tmp_path / "a", b"secret", secret=True)
    write_atomic(tmp_path / "a", b"secret", secret=True, replace=True)
    assert loot.read_bytes() == b""
    assert not (tmp_path / "a").is_symlink()


# -- disks and folders that do not take a file


class FullDisk(io.BufferedWriter):
    """A file on a disk with little room left."""

    room = 4

    def write(self, data: Any) -> int:
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.mark.parametrize("secret", [True, False])
def test_a_full_disk_names_the_file_and_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: bool
) -> None:
    target = tmp_path / "case.json"
    write_atomic(target, b"old")
    monkeypatch.setattr(
        files, "open", lambda fd, mode, **_: FullDisk(io.FileIO(fd, mode, closefd=False)), raising=False
    )
    with pytest.raises(Refused, match=r"case.json: cannot be written \(no space left on device\)"):
        write_atomic(target, [b"abcd", b"efghi"], secret=secret, replace=True)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["case.json"]


def test_a_folder_that_may_not_be_written_to_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(Refused, match=r"a: cannot be written \(permission denied\)"):
        write_atomic(tmp_path / "a", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replace", [True, False])
def test_a_path_that_is_a_folder_is_said(tmp_path: Path, replace: bool) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(Refused, match="a: is a folder; name a file"):
        write_atomic(tmp_path / "a", b"x", replace=replace)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written"):
        write_atomic(tmp_path / "no" / "a", b"")
