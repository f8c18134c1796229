"""Readouts as a registry has them on record, for the operator and for a judge: bytes, digest, and terms."""

import hashlib
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from zktrace.errors import InputError, MalformedFile
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.network import Network
from zktrace.readouts.reader import Terms
from zktrace.registry.records import Layout

READOUT_LIMIT: Final = 1 << 20  # values
_READOUT_DOMAIN: Final = b"zkt-readout-v1"


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


def terms_of(
    layout: Layout,
    *,
    seed: bytes,
    probes: ModelState | None = None,
    names: tuple[str, ...] | None = None,
    shared: ModelState | None = None,
    network: Network | None = None,
) -> Terms:
    """A layout on record, with the seed of its directions: what operator and judge make a reader of."""
    return Terms(
        carrier=layout.carrier,
        seed=seed,
        length=layout.length,
        profile="paper" if layout.profile == "paper" else "informed",
        dimension=layout.dimension,
        layers=layout.layers,
        deviations=tuple(np.frombuffer(layout.deviations, dtype=">f4").astype(np.float64).tolist()),
        probes=probes,
        names=names,
        shared=shared,
        network=network,
        frozen=layout.frozen,
    )
