"""The digest by which model signing tools name a model (OpenSSF Model Signing v1.0): of files as they lie.

A model is a file, or a folder with all that is in it. Its digest is SHA-256 over the SHA-256 digests of its
files, one after the other in the order of their names. Another file with the same tensors has another digest;
`zktrace.models.digest` is over what the tensors are.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from zktrace.errors import LimitExceeded, Refused
from zktrace.models.limits import DEFAULT_LIMITS, Limits
from zktrace.primitives.files import open_regular
from zktrace.primitives.text import shown

_ALONE: Final = "."  # the name of a model's only file
_IGNORED: Final = (".git", ".gitattributes", ".github", ".gitignore")  # at the top of a folder
_ENTRIES_LIMIT: Final = 65_536  # files and folders of a model
_DEPTH_LIMIT: Final = 32


def oms_digest(path: Path, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """32 bytes that name a model file, or a folder. Refused for links, and where there is no file."""
    return oms_root(file_digests(path, limits))


def oms_root(digests: Mapping[str, bytes]) -> bytes:
    """The digest of a model from those of its files.

    Names are ordered by their parts between slashes: what is in a folder stands together.
    """
    ordered = sorted(digests, key=lambda name: name.split("/"))
    return hashlib.sha256(b"".join(digests[name] for name in ordered)).digest()


def file_digests(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """The SHA-256 digest of each file of a model, by its name in the folder."""
    if not path.is_dir():
        return {_ALONE: _hashed(path, limits.max_file_bytes)[0]}
    found: dict[str, bytes] = {}
    left = limits.max_file_bytes
    for name in _files(path):
        found[name], size = _hashed(path / name, left)
        left -= size
    if not found:
        raise Refused(f"{path}: has no file in it")
    return found


def _files(root: Path) -> Iterator[str]:
    """Names of all files below a folder, but those that belong to git."""
    waiting, seen = [("", 0)], 0
    while waiting:
        inside, depth = waiting.pop()
        try:
            with os.scandir(root / inside) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _ENTRIES_LIMIT or depth > _DEPTH_LIMIT:
                        raise LimitExceeded(f"{root}: more files, or deeper folders, than a model may have")
                    if not inside and entry.name in _IGNORED:
                        continue
                    name = f"{inside}{entry.name}"
                    _check_plain(entry, name)
                    if entry.is_dir():
                        waiting.append((f"{name}/", depth + 1))
                    else:
                        yield name
        except OSError as error:
            raise Refused(
                f"{root}: cannot be read ({(error.strerror or 'unknown reason').lower()})"
            ) from None


def _check_plain(entry: "os.DirEntry[str]", name: str) -> None:
    if entry.is_symlink():
        raise Refused(f"{shown(name)}: is a link; a model that is signed for is files and folders")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Refused(f"{shown(name)}: a name that is not UTF-8") from None


def _hashed(path: Path, limit: int) -> tuple[bytes, int]:
    """Digest and size of a file."""
    with open(open_regular(path, limit=limit), "rb") as handle:
        found = hashlib.file_digest(handle, "sha256").digest()
        return found, handle.tell()
