"""All systems by name."""

from collections.abc import Mapping
from typing import Final

from zktrace.baselines.deepmarks import DeepMarks
from zktrace.baselines.duw import DUW
from zktrace.baselines.fedipr import FedIPR
from zktrace.baselines.fedtracker import FedTracker
from zktrace.baselines.fedzkp import FedZKP
from zktrace.baselines.ours import ZKTrace
from zktrace.baselines.protocol import System
from zktrace.baselines.waffle import Waffle
from zktrace.errors import InputError

SYSTEMS: Final[Mapping[str, type[System]]] = {
    each.name: each for each in (FedZKP, FedTracker, DUW, FedIPR, Waffle, DeepMarks, ZKTrace)
}


def system_named(name: str) -> System:
    """A system with its usual parameters."""
    if name not in SYSTEMS:
        raise InputError(f"no system {name!r}; known: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]()
