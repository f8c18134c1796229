"""Whole files: read within a bound, written all at once or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from zktrace.errors import LimitExceeded, Refused


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
        data = handle.read(limit + 1)
    if len(data) > limit:  # the file grew while it was read
        raise LimitExceeded(f"{path}: more than {limit} bytes")
    return data


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644, replace: bool = False) -> None:
    """Write `data` to `path` with permission bits `mode`: complete and durable, or not there.

    Without `replace` an existing file is never touched, not even by a writer that runs at the same time
    (the name is claimed by a hard link, which fails if it exists).
    """
    if not replace and path.exists():
        raise Refused(f"{path}: exists already (--force replaces it)")
    try:
        descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise Refused(f"{path}: cannot be written ({_reason(error)})") from error
    try:
        with open(descriptor, "wb") as handle:
            os.fchmod(handle.fileno(), mode)
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        if replace:
            os.replace(scratch, path)
        else:
            os.link(scratch, path)
    except FileExistsError as error:
        raise Refused(f"{path}: exists already (--force replaces it)") from error
    except OSError as error:
        raise Refused(f"{path}: cannot be written ({_reason(error)})") from error
    finally:
        Path(scratch).unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
