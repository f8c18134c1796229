"""The canonical digest of a model's state (docs/spec/model-state.md)."""

import hashlib

from zktrace.models.state import ModelState, Tensor
from zktrace.primitives.encoding import field

DOMAIN = b"zkt-model-state-v1"


def model_digest(state: ModelState) -> bytes:
    """32 bytes over every tensor, buffers included.

    The same names, element types, shapes and bytes give the same digest, whatever file they came from; any
    other state gives another (SHA-256). The data is hashed where it lies, or piece by piece as it is made.
    """
    sha = hashlib.sha256(opening(state))
    for tensor in state.tensors():
        sha.update(heading(tensor))
        for piece in tensor.pieces():
            sha.update(piece)
    return sha.digest()


def opening(state: ModelState) -> bytes:
    """What is hashed before the first tensor."""
    return field(DOMAIN) + _number(len(state))


def heading(tensor: Tensor) -> bytes:
    """What is hashed before the bytes of a tensor."""
    about = field(tensor.name.encode()) + field(tensor.dtype.encode())
    return about + b"".join(map(_number, (len(tensor.shape), *tensor.shape, tensor.nbytes)))


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
