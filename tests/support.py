"""What several test folders share."""

import hashlib
from collections.abc import Callable


def seeded(label: str) -> Callable[[int], bytes]:
    """A deterministic stand-in for operating-system randomness: every call goes on where the last ended."""
    position = 0

    def draw(size: int) -> bytes:
        nonlocal position
        out = hashlib.shake_128(label.encode()).digest(position + size)[position:]
        position += size
        return out

    return draw
