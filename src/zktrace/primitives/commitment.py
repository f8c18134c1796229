"""Hash commitments: Com(fields; rho) is SHAKE-256 over a domain, 32 uniform bytes and the fields.

Binding rests on collisions, hiding on rho, which must be uniform, secret and used once.
"""

import hmac
from typing import Final

from zktrace.errors import InputError
from zktrace.primitives.shake import Shake

COMMITMENT_BYTES: Final = 32
OPENING_BYTES: Final = 32


def commit(domain: str, rho: bytes, *parts: bytes) -> bytes:
    """Com(parts; rho)."""
    if len(rho) != OPENING_BYTES:
        raise InputError(f"an opening has {OPENING_BYTES} bytes, not {len(rho)}")
    return Shake(f"zkt-commitment-v1/{domain}", rho, *parts).digest(COMMITMENT_BYTES)


def opens(commitment: bytes, domain: str, rho: bytes, *parts: bytes) -> bool:
    """Whether these are the values that were committed to."""
    return len(rho) == OPENING_BYTES and hmac.compare_digest(commitment, commit(domain, rho, *parts))
