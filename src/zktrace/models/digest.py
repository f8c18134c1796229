"""The canonical digest of a model's state (docs/spec/model-state.md)."""

import hashlib

from zktrace.models.state import ModelState
from zktrace.primitives.encoding import field

DOMAIN = b"zkt-model-state-v1"


def model_digest(state: ModelState) -> bytes:
    """32 bytes over every tensor, buffers included.

    The same names, element types, shapes and bytes give the same digest, whatever file they came from; any
    other state gives another (SHA-256). The data is hashed where it lies.
    """
    sha = hashlib.sha256(field(DOMAIN) + _number(len(state)))
    for tensor in state.tensors():
        sha.update(field(tensor.name.encode()) + field(tensor.dtype.encode()))
        sha.update(_number(len(tensor.shape)) + b"".join(_number(size) for size in tensor.shape))
        sha.update(_number(len(tensor.data)))
        sha.update(tensor.data)
    return sha.digest()


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
