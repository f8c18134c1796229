"""Passwords as they are kept: Argon2id, a few at a time."""

import secrets
from threading import BoundedSemaphore
from typing import Final

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from zktrace.errors import InputError

SHORTEST_PASSWORD: Final = 12
LONGEST_PASSWORD: Final = 1024
AT_ONCE: Final = 2  # each takes the memory
_HASHING: Final = BoundedSemaphore(AT_ONCE)


def hashed_password(password: str) -> str:
    """A password as it is kept: Argon2id in the PHC format."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    with _HASHING:
        return Argon2id(
            salt=secrets.token_bytes(16), length=32, iterations=3, lanes=1, memory_cost=1 << 16
        ).derive_phc_encoded(password.encode())


def fits(password: str, hashed: str) -> bool:
    """Whether it is the one that was kept."""
    if len(password) > LONGEST_PASSWORD:
        return False
    try:
        with _HASHING:
            Argon2id.verify_phc_encoded(password.encode(), hashed)
    except InvalidKey:
        return False
    return True
