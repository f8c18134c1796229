"""Readouts as a registry has them on record: their bytes and digest, made by the operator and by a judge."""

import hashlib
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.errors import InputError, MalformedFile

READOUT_LIMIT: Final = 1 << 20  # values
_READOUT_DOMAIN: Final = b"zkt-readout-v1"

Floats = NDArray[np.float64]


def readout_bytes(values: ArrayLike) -> bytes:
    """A readout as big-endian float64, as files and digests have it."""
    given = np.asarray(values)
    if given.dtype != np.float64 or given.ndim != 1 or not 1 <= len(given) <= READOUT_LIMIT:
        raise InputError(f"a readout is one row of 1..{READOUT_LIMIT} values in float64")
    if not np.isfinite(given).all():
        raise InputError("a readout has finite values only")
    return given.astype(">f8").tobytes()


def read_readout(data: bytes, *, what: str) -> Floats:
    """The values that `readout_bytes` wrote, or MalformedFile."""
    if not data or len(data) % 8 or len(data) > 8 * READOUT_LIMIT:
        raise MalformedFile(f"{what}: {len(data)} bytes are no readout")
    values = np.frombuffer(data, dtype=">f8").astype(np.float64)
    if not np.isfinite(values).all():
        raise MalformedFile(f"{what}: a readout has finite values only")
    return values


def readout_digest(values: ArrayLike) -> bytes:
    """SHA-256 over a domain and the values: 32 bytes, different where any bit of a value is."""
    return hashlib.sha256(_READOUT_DOMAIN + readout_bytes(values)).digest()
