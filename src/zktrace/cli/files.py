"""Files that commands are given: each is read by what it is, and named if it is something else."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from zktrace.errors import MalformedEvidence, MalformedKey

if TYPE_CHECKING:
    from zktrace.credentials import PublicKey


def public_key(path: Path) -> "PublicKey":
    """A station's public key. Nothing of a secret key is ever shown."""
    from zktrace.credentials import PublicKey
    from zktrace.credentials.keys import FILE_LIMIT, SECRET_MAGIC
    from zktrace.primitives.files import read_bounded

    data = read_bounded(path, limit=FILE_LIMIT)
    if data.startswith(SECRET_MAGIC):
        raise MalformedKey(
            f"{path}: a secret key, where a public one belongs: it stays with its station, give the .pub file"
        )
    try:
        return PublicKey.from_bytes(data)
    except MalformedKey as error:
        raise MalformedKey(f"{path}: {error}") from None


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
