"""Named streams of randomness: a seed and a purpose give a generator, and no two purposes share one.

Philox is counter-based: the key says which experiment, the upper half of the counter says which sample, so
sample 70,000 is drawn without drawing the 70,000 before it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.shake import Shake

_DOMAIN: Final = "zkt-data-v1/stream"
_SEED_LIMIT: Final = 1 << 63


def stream_key(seed: int, *purpose: str) -> NDArray[np.uint64]:
    """The 128-bit Philox key of a seed and a purpose."""
    if not 0 <= seed < _SEED_LIMIT:
        raise InputError(f"seed {seed}: must lie in 0..2^63-1")
    name = Shake(_DOMAIN, seed.to_bytes(8, "big"), *(part.encode() for part in purpose)).digest(16)
    return np.frombuffer(name, dtype="<u8").astype(np.uint64)


def numbered(key: NDArray[np.uint64], index: int) -> np.random.Generator:
    """Stream `index` of a key. Streams of one key meet after 2^128 blocks: never."""
    counter = np.array([0, 0, index, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """The generator of a seed and a purpose."""
    return numbered(stream_key(seed, *purpose), 0)
