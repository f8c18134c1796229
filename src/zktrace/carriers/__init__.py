"""What a carrier is, as data. Every other room asks this table."""

from zktrace.carriers.table import (
    ALIGNMENTS,
    CARRIERS,
    IDENTITY,
    NAMES,
    PROFILES,
    Carrier,
    Profile,
    carrier,
    needs_training,
    parts,
)

__all__ = [
    "ALIGNMENTS",
    "CARRIERS",
    "IDENTITY",
    "NAMES",
    "PROFILES",
    "Carrier",
    "Profile",
    "carrier",
    "needs_training",
    "parts",
]
