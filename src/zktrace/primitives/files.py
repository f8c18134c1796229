"""Whole files: read within a bound, written all at once or not at all."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from zktrace.errors import LimitExceeded, Refused

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()


def open_regular(path: Path, *, limit: int) -> int:
    """A read-only descriptor of a regular file of at most `limit` bytes. The caller closes it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise Refused(f"{path}: cannot be read ({_reason(error)})") from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise Refused(f"{path}: is not a regular file")
    if facts.st_size > limit:
        os.close(descriptor)
        raise LimitExceeded(f"{path}: {facts.st_size} bytes, the limit is {limit}")
    return descriptor


def read_bounded(path: Path, *, limit: int) -> bytes:
    """The content of a regular file, refused if it is larger than `limit` bytes."""
    with open(open_regular(path, limit=limit), "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        data = handle.read(size + 1)  # not of the limit: room is made for as much as is asked for
    if len(data) > size:
        raise Refused(f"{path}: grew while it was read")
    return data


def write_atomic(
    path: Path,
    data: bytes | Iterable[bytes | memoryview],
    *,
    secret: bool = False,
    replace: bool = False,
) -> None:
    """Write `data`, in one piece or several, to `path`, as `whole_file` does."""
    with whole_file(path, secret=secret, replace=replace) as handle:
        for piece in (data,) if isinstance(data, bytes) else data:
            handle.write(piece)


@contextmanager
def whole_file(path: Path, *, secret: bool = False, replace: bool = False) -> Iterator[BinaryIO]:
    """A file to fill; it becomes `path` if the block ends well, durable, and is gone if it does not.

    A secret file has mode 0600. Without `replace` an existing file is never touched, not even by a writer
    that runs at the same time (the name is claimed by a hard link, which fails if it exists).

    Everything goes through the descriptors of the new file and its folder, which nobody can exchange:
    whoever may write to the folder can put other names there, but gets no byte of what is written.
    """
    if os.path.isdir(path) and not os.path.islink(path):
        raise Refused(f"{path}: is a folder; name a file")
    if not replace and os.path.lexists(path):
        raise Refused(f"{path}: exists already (--force replaces it)")
    try:
        with _descriptor(path.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
            yield from _filled(path, folder, secret=secret, replace=replace)
            with suppress(OSError):  # the file is durable; the name too, where a folder can be synced
                os.fsync(folder)
    except FileExistsError as error:
        raise Refused(f"{path}: exists already (--force replaces it)") from error
    except OSError as error:
        raise Refused(f"{path}: cannot be written ({_reason(error)})") from error


def _filled(path: Path, folder: int, *, secret: bool, replace: bool) -> Iterator[BinaryIO]:
    """The scratch file of `path` in an open folder, filled by whoever takes it, then under its name."""
    scratch = f"{_scratch_prefix(path)}{token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with _descriptor(scratch, flags, mode=0o600 if secret else 0o666, folder=folder) as descriptor:
        try:
            if secret:
                os.fchmod(descriptor, 0o600)
            with open(descriptor, "wb", closefd=False) as handle:
                yield handle
            os.fsync(descriptor)
            _give_name(scratch, path.name, folder=folder, own=descriptor, replace=replace)
        except BaseException:
            if secret:
                os.ftruncate(descriptor, 0)  # wherever somebody moved it, nothing is in it
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(scratch, dir_fd=folder)


@contextmanager
def _descriptor(
    path: Path | str, flags: int, *, mode: int = 0o777, folder: int | None = None
) -> Iterator[int]:
    descriptor = os.open(path, flags, mode, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def claimed(folder: Path, *, busy: str, mode: int = 0o777) -> Iterator[None]:
    """Sole use of a folder, made with `mode` if it is not there; Refused with `busy` if another has it.

    The folder itself is locked, so nothing is left in it, and a process that dies gives it back.
    """
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Refused(f"{folder}: cannot be made ({_reason(error)})") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        why = busy if isinstance(error, BlockingIOError) else f"cannot be locked ({_reason(error)})"
        raise Refused(f"{folder}: {why}") from error
    try:
        yield
    finally:
        os.close(descriptor)


def sweep(path: Path) -> None:
    """Remove what writers of `path` that were killed left beside it. Not while one is writing."""
    for left in path.parent.glob(f"{_scratch_prefix(path)}*"):
        left.unlink(missing_ok=True)


def _scratch_prefix(path: Path) -> str:
    """Short whatever the name is, hidden, and of this path alone."""
    return f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}."


def _give_name(scratch: str, name: str, *, folder: int, own: int, replace: bool) -> None:
    """Let the file of the descriptor `own` have its name, and see that it is this file that has it."""
    _check_same(scratch, folder, own)
    if replace:
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        try:
            os.link(scratch, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS or _exists(name, folder):
                raise
            os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)  # no hard links here
    _check_same(name, folder, own)


def _check_same(name: str, folder: int, own: int) -> None:
    found, wanted = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(own)
    if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
        raise OSError(errno.EBUSY, "somebody exchanges files in this folder")


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
