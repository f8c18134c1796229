"""What a carrier is, as data, and how looks at a suspect are planned. Every other room asks this one."""

from zktrace.carriers.looks import Look, planned
from zktrace.carriers.split import AS_IT_IS
from zktrace.carriers.table import (
    ALIGNMENTS,
    CARRIERS,
    IDENTITY,
    LEAST,
    MOST,
    NAMES,
    PROFILES,
    Alignment,
    Carrier,
    Profile,
    add,
    carrier,
    law_of,
    needs_training,
    parts,
    remove,
)

__all__ = [
    "ALIGNMENTS",
    "AS_IT_IS",
    "CARRIERS",
    "IDENTITY",
    "LEAST",
    "MOST",
    "NAMES",
    "PROFILES",
    "Alignment",
    "Carrier",
    "Look",
    "Profile",
    "add",
    "carrier",
    "law_of",
    "needs_training",
    "parts",
    "planned",
    "remove",
]
