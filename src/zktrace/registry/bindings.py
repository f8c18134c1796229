"""What a registry commits to, as pure functions: the operator makes the values, a judge makes them again.

Every commitment is `primitives.commitment.commit` under a domain of its own (docs/spec/registry.md).
"""

import hashlib
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.codes.biases import Biases
from zktrace.credentials.keys import PublicKey
from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.commitment import commit

READOUT_LIMIT: Final = 1 << 20  # values
_READOUT_DOMAIN: Final = b"zkt-readout-v1"

Floats = NDArray[np.float64]


def key_commitment(rho: bytes, secret: bytes) -> bytes:
    """Com(code key; rho)."""
    return commit("code-key", rho, secret)


def bias_commitment(rho: bytes, carrier: str, biases: Biases) -> bytes:
    """Com(carrier, c, T_0 ... T_(n-1); rho): the secret biases of one carrier's code."""
    thresholds = biases.thresholds.astype(">u4").tobytes()
    return commit("biases", rho, carrier.encode(), biases.colluders.to_bytes(8, "big"), thresholds)


def directions_commitment(seed: bytes, carrier: str) -> bytes:
    """Com(carrier; seed): the seed is uniform and secret, so it is its own opening."""
    return commit("directions", seed, carrier.encode())


def enrolment_commitment(rho: bytes, carrier: str, public: PublicKey, codeword: bytes, row: bytes) -> bytes:
    """Com(w || X || A || y; rho) of `eq_enroll`, for one carrier: codeword, packed row, public key."""
    return commit("enrolment", rho, carrier.encode(), codeword, row, public.matrix, public.y)


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
