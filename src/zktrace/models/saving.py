"""A state written as a safetensors file, whole or not at all, and hashed in the same pass.

Tensors are taken in the order of the digest, each piece once: hashed by a thread while it is written to its
place in the file, and while the next ones are made by another. So a state of lazy tensors needs memory for a
few pieces.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

from zktrace.models.digest import heading, opening
from zktrace.models.dtypes import BY_TAG
from zktrace.models.safetensors_header import Slot, build_header, file_order
from zktrace.models.state import Array, ModelState, Tensor
from zktrace.primitives.files import whole_file
from zktrace.primitives.pipeline import ahead

_WORTH_A_THREAD = 1 << 20  # bytes of a piece
AHEAD = 4  # pieces that are made before they are needed
BEHIND = 4  # pieces that are written before they are hashed
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
        for tensor, piece in ahead(_pieces(full), AHEAD):
            if tensor is not None:
                handle.seek(places[tensor.name])
                hashing.add(heading(tensor))
            hashing.add(piece)
            _write(handle, piece)
    return hashing.digest()


def write_plain(state: ModelState, out: IO[bytes]) -> None:
    """The state as a safetensors file without metadata, piece after piece in the order of the file."""
    slots = sorted(map(_slot, state.tensors()), key=file_order)
    out.write(build_header(slots))
    for slot in slots:
        for piece in state.tensor(slot.name).pieces():
            _write(out, piece)
    out.flush()


def _write(out: IO[bytes], piece: memoryview) -> None:
    for first in range(0, len(piece), _WRITTEN):
        out.write(piece[first : first + _WRITTEN])


def _pieces(state: ModelState) -> Iterator[tuple[Tensor | None, memoryview]]:
    """The bytes of all tensors in order, in pieces; before those of each, the tensor and no bytes."""
    for tensor in state.tensors():
        yield tensor, memoryview(b"")
        for piece in tensor.pieces():
            yield None, piece


def _slot(tensor: Tensor) -> Slot:
    return Slot(name=tensor.name, dtype=BY_TAG[tensor.dtype], shape=tensor.shape, size=tensor.nbytes)


class _Hashing:
    """SHA-256 of pieces in order, large ones in a thread of their own, which may be a few behind."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self._going: deque[Future[None]] = deque()

    def __enter__(self) -> "_Hashing":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._thread.shutdown(cancel_futures=error is not None)

    def add(self, piece: bytes | memoryview) -> None:
        """Hash a piece after those before it; it must stay as it is."""
        if len(piece) < _WORTH_A_THREAD and not self._going:
            self._sha.update(piece)
            return
        self._going.append(self._thread.submit(self._sha.update, piece))
        self._wait(BEHIND)

    def digest(self) -> bytes:
        self._wait(0)
        return self._sha.digest()

    def _wait(self, left: int) -> None:
        while len(self._going) > left or (self._going and self._going[0].done()):
            self._going.popleft().result()
