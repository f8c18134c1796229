"""Checkpoints: one safetensors file with arrays and a JSON record, written atomically. No pickle.

arrays     by name; a training's groups are prefixed: `model.`, `momentum.`, `head.`
metadata   one entry `zktrace`: JSON of {"format": "zkt-checkpoint-v1", "kind": ..., "facts": {...}}
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from zktrace.errors import InputError, MalformedModel, Refused
from zktrace.learning.arrays import Arrays, State
from zktrace.models import open_model, save_model
from zktrace.primitives.files import sweep

FORMAT = "zkt-checkpoint-v1"
_ENTRY = "zktrace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a run needs to go on: arrays, and facts that fit in JSON. `kind` says which run."""

    kind: str
    arrays: Arrays
    facts: Mapping[str, Any]

    def group(self, prefix: str) -> State:
        """Arrays named `prefix.*`, without the prefix; copies that outlive the file."""
        start = f"{prefix}."
        found = {name: each for name, each in self.arrays.items() if name.startswith(start)}
        return {name.removeprefix(start): np.array(each) for name, each in found.items()}


def prefixed(prefix: str, arrays: Arrays) -> State:
    """The inverse of `Checkpoint.group`."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Replace the file at `path` by this checkpoint: a reader finds the old one or the new one, whole."""
    record = {"format": FORMAT, "kind": checkpoint.kind, "facts": dict(checkpoint.facts)}
    text = json.dumps(record, sort_keys=True, allow_nan=False)
    save_model(path, checkpoint.arrays, metadata={_ENTRY: text}, replace=True)


def load_checkpoint(path: str | os.PathLike[str], *, kind: str) -> Checkpoint:
    """The checkpoint at `path`, if it is one of this kind."""
    arrays = open_model(path)
    record = _record(path)
    if record.get("format") != FORMAT or not isinstance(record.get("facts"), dict):
        raise MalformedModel(f"{os.fspath(path)}: a model file, but not a checkpoint ({FORMAT})")
    if record.get("kind") != kind:
        raise InputError(f"{os.fspath(path)}: a checkpoint of {record.get('kind')!r}, not of {kind!r}")
    return Checkpoint(kind=kind, arrays=arrays, facts=record["facts"])


def begun(path: Path, *, kind: str, resume: bool) -> Checkpoint | None:
    """The run saved at `path`, to be taken up; None if there is none. A new run overwrites nothing."""
    if not path.parent.is_dir():
        raise Refused(f"{path}: the folder does not exist")
    sweep(path)  # what a killed writer left
    if not path.exists():
        return None
    if not resume:
        raise Refused(f"{path}: holds a run that was begun; resume it, or name another file")
    return load_checkpoint(path, kind=kind)


def check_same(path: Path, saved: Checkpoint, facts: Mapping[str, Any]) -> None:
    """A saved run goes on with what it was begun with."""
    for what, now in facts.items():
        before = saved.facts.get(what)
        if before == now:
            continue
        differ = ""
        if isinstance(now, dict):
            keys = [key for key in now if not isinstance(before, dict) or before.get(key) != now[key]]
            differ = f" ({', '.join(keys)} differ)"
        raise InputError(f"{path}: the saved run had another {what}{differ}")


def _record(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            record = json.loads((file.metadata() or {}).get(_ENTRY, "{}"))
    except (SafetensorError, OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a PCG64 generator (numpy's default) as JSON can hold it."""
    state = dict(rng.bit_generator.state)
    if state["bit_generator"] != "PCG64":
        raise InputError(
            f"checkpoints keep PCG64 generators (numpy.random.default_rng), not {state['bit_generator']}"
        )
    return state


def restore_rng(rng: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Set a PCG64 generator to a saved state."""
    rng_state(rng)
    try:
        rng.bit_generator.state = dict(state)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MalformedModel("the checkpoint's generator state cannot be restored") from error
