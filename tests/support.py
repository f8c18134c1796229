"""What several test folders share."""

import hashlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any


def seeded(label: str) -> Callable[[int], bytes]:
    """A deterministic stand-in for operating-system randomness: every call goes on where the last ended."""
    position = 0

    def draw(size: int) -> bytes:
        nonlocal position
        out = hashlib.shake_128(label.encode()).digest(position + size)[position:]
        position += size
        return out

    return draw


def unchecked(value: Any, **changes: Any) -> Any:
    """A record with wrong values, which its own class would refuse to make: what a liar's program has."""
    made = object.__new__(type(value))
    for each in fields(value):
        object.__setattr__(made, each.name, changes.get(each.name, getattr(value, each.name)))
    return made
