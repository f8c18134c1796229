"""Files that commands are given: each is read by what it is, and named if it is something else."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from zktrace.errors import LimitExceeded, MalformedEvidence, MalformedFile, Refused, UnknownParameters

if TYPE_CHECKING:
    from zktrace.credentials import PublicKey, SecretKey

T = TypeVar("T")


def read_as(path: Path, what: str, read: Callable[[bytes], T], *, limit: int) -> T:
    """What `read` makes of a file. If it makes nothing of it, the line names the file and what is wanted."""
    from zktrace.primitives.files import read_bounded

    try:
        data = read_bounded(path, limit=limit)
    except LimitExceeded as error:
        raise LimitExceeded(f"{error}: {what} belongs here") from None
    try:
        return read(data)
    except (MalformedFile, LimitExceeded, UnknownParameters) as error:
        raise type(error)(f"{path}: {error}; {what} belongs here") from None


def secret_key(path: Path) -> "SecretKey":
    """A station's secret key."""
    from zktrace.credentials import SecretKey
    from zktrace.credentials.keys import FILE_LIMIT

    return read_as(path, "a secret key (.key)", SecretKey.from_bytes, limit=FILE_LIMIT)


def public_key(path: Path) -> "PublicKey":
    """A station's public key. Nothing of a secret key is ever shown."""
    from zktrace.credentials import PublicKey
    from zktrace.credentials.keys import FILE_LIMIT, SECRET_MAGIC

    def read(data: bytes) -> PublicKey:
        if data.startswith(SECRET_MAGIC):
            raise Refused(
                f"{path}: a secret key, where a public one belongs: "
                "it stays with its station, give the .pub file"
            )
        return PublicKey.from_bytes(data)

    return read_as(path, "a public key (.pub)", read, limit=FILE_LIMIT)


def evidence_bytes(path: Path) -> bytes:
    """The content of an evidence file; what is plainly something else is refused by its name."""
    from zktrace.evidence.file import FILE_LIMIT
    from zktrace.models.zip_members import MAGIC
    from zktrace.primitives.files import open_regular, read_bounded

    with open(open_regular(path, limit=sys.maxsize), "rb") as handle:
        begin = handle.read(9)
    if begin[:4] == MAGIC or begin[8:] == b"{":
        raise MalformedEvidence(f"{path}: a model file, where evidence belongs (case.zkt.json)")
    if not begin.startswith(b"{"):
        raise MalformedEvidence(f"{path}: not evidence (case.zkt.json), which is JSON text")
    return read_bounded(path, limit=FILE_LIMIT)
