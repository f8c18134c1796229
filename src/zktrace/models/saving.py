"""A state written as a safetensors file, whole or not at all, and hashed in the same pass.

Tensors are taken in the order of the digest, each piece once: hashed by a thread while it is written to its
place in the file and the next one is made. So a state of lazy tensors needs memory for two pieces.
"""

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from zktrace.models.digest import heading, opening
from zktrace.models.dtypes import BY_TAG
from zktrace.models.safetensors_header import Slot, build_header, file_order
from zktrace.models.state import Array, ModelState, Tensor
from zktrace.primitives.files import whole_file

_WORTH_A_THREAD = 1 << 20  # bytes of a piece
_WRITTEN = 1 << 17  # bytes that the system is handed at a time: ext4 was seen to be slow at more


def save_model(
    path: str | os.PathLike[str],
    state: Mapping[str, Array],
    *,
    metadata: Mapping[str, str] | None = None,
    secret: bool = False,
    replace: bool = False,
) -> bytes:
    """Write a `ModelState`, or numpy arrays by name, as a safetensors file: complete, or not there.

    Returns the model's digest. The bytes depend on the state and the metadata only. The metadata is not
    covered by the digest. A secret file has mode 0600.
    """
    full = state if isinstance(state, ModelState) else ModelState.from_arrays(state)
    slots = sorted(map(_slot, full.tensors()), key=file_order)
    header = build_header(slots, metadata)
    places, at = {}, len(header)
    for slot in slots:
        places[slot.name] = at
        at += slot.size
    with whole_file(Path(path), secret=secret, replace=replace) as handle, _Hashing() as hashing:
        handle.write(header)
        hashing.add(opening(full))
        for tensor in full.tensors():
            handle.seek(places[tensor.name])
            hashing.add(heading(tensor))
            for piece in tensor.pieces():
                hashing.add(piece)
                for first in range(0, len(piece), _WRITTEN):
                    handle.write(piece[first : first + _WRITTEN])
    return hashing.digest()


def _slot(tensor: Tensor) -> Slot:
    return Slot(name=tensor.name, dtype=BY_TAG[tensor.dtype], shape=tensor.shape, size=tensor.nbytes)


class _Hashing:
    """SHA-256 of pieces in order, large ones in a thread of their own, one at a time."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self._going: Future[None] | None = None

    def __enter__(self) -> "_Hashing":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def add(self, piece: bytes | memoryview) -> None:
        """Hash a piece after those before it; it must stay as it is until the next one is added."""
        self._wait()
        if len(piece) < _WORTH_A_THREAD:
            self._sha.update(piece)
        else:
            self._going = self._thread.submit(self._sha.update, piece)

    def digest(self) -> bytes:
        self._wait()
        return self._sha.digest()

    def _wait(self) -> None:
        if self._going is not None:
            self._going.result()
            self._going = None
