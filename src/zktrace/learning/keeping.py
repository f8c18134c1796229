"""A training that is saved after every epoch, and goes on from there to the very weights it would have had.

model.*, head.*, aside.*      parameters and buffers of the modules that are trained
momentum.*                    SGD's memory of each parameter
exp_avg.*, exp_avg_sq.*       Adam's, and the fact `steps`
facts                         what the run was begun with, the generator's state, a report of every epoch
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer

from zktrace.errors import InputError, MalformedModel
from zktrace.learning.arrays import Images, Labels, State
from zktrace.learning.checkpoints import (
    Checkpoint,
    begun,
    check_same,
    prefixed,
    restore_rng,
    rng_state,
    save_checkpoint,
)
from zktrace.learning.states import load_state, state_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Report = TypeVar("Report", bound="DataclassInstance")

_MEMORY: Final[dict[type[Optimizer], dict[str, str]]] = {  # group in the file: name in the optimizer's state
    SGD: {"momentum": "momentum_buffer"},
    Adam: {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"},
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keeping(Generic[Report]):
    """Where a training is saved, and all that its next epoch depends on but data and optimizer."""

    path: Path
    resume: bool  # take up what is saved there; else a saved run is refused
    kind: str
    facts: Mapping[str, Any]  # what a saved run must share with this one
    modules: Mapping[str, nn.Module]
    rng: np.random.Generator
    report: type[Report]  # a dataclass of what JSON can hold

    def begin(self, optimizer: Optimizer) -> list[Report]:
        """Take up the saved run, or see to it that a new one overwrites nothing; the reports so far."""
        rng_state(self.rng)  # refuse a generator that cannot be saved now, not after an epoch
        _memory(optimizer)
        saved = begun(self.path, kind=self.kind, resume=self.resume)
        return [] if saved is None else self._restore(saved, optimizer)

    def save(self, optimizer: Optimizer, reports: Sequence[Report]) -> None:
        """Replace what is saved by the present state."""
        arrays: State = {}
        for name, module in self.modules.items():
            arrays |= prefixed(name, state_of(module))
        facts = dict(self.facts) | {"rng": rng_state(self.rng), "reports": [asdict(each) for each in reports]}
        for name, each in self._parameters().items():
            state = optimizer.state[each]
            for group, key in _memory(optimizer).items():
                if state.get(key) is not None:
                    arrays[f"{group}.{name}"] = state[key].numpy().copy()
            if isinstance(optimizer, Adam):
                facts["steps"] = int(state["step"])
        save_checkpoint(self.path, Checkpoint(kind=self.kind, arrays=arrays, facts=facts))

    def _parameters(self) -> dict[str, nn.Parameter]:
        return dict(nn.ModuleDict(dict(self.modules)).named_parameters())

    def _restore(self, saved: Checkpoint, optimizer: Optimizer) -> list[Report]:
        """Set everything to what `saved` says."""
        check_same(self.path, saved, self.facts)
        for name, module in self.modules.items():
            load_state(module, saved.group(name))
        try:
            self._recall(saved, optimizer)
            restore_rng(self.rng, saved.facts["rng"])
            return [self.report(**report) for report in saved.facts["reports"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedModel(f"{self.path}: the checkpoint lacks what a run needs to go on") from error

    def _recall(self, saved: Checkpoint, optimizer: Optimizer) -> None:
        parameters = self._parameters()
        for group, key in _memory(optimizer).items():
            kept = saved.group(group)
            for name in parameters if isinstance(optimizer, Adam) else kept:
                if kept[name].shape != tuple(parameters[name].shape):
                    raise MalformedModel(f"{self.path}: {group}.{name} has shape {kept[name].shape}")
                optimizer.state[parameters[name]][key] = torch.from_numpy(kept[name]).clone()
        if isinstance(optimizer, Adam):
            for each in parameters.values():
                optimizer.state[each]["step"] = torch.tensor(float(saved.facts["steps"]))


def _memory(optimizer: Optimizer) -> dict[str, str]:
    """What an optimizer remembers of each parameter."""
    if type(optimizer) not in _MEMORY:
        raise InputError(f"checkpoints keep SGD and Adam, not {type(optimizer).__name__}")
    return _MEMORY[type(optimizer)]


def fingerprint(images: Images, labels: Labels) -> dict[str, Any]:
    """What tells one training set from another: shape, and a hash of the labels and of 64 images."""
    chosen = np.linspace(0, len(images) - 1, num=min(64, len(images)), dtype=np.int64)
    digest = hashlib.sha256(np.asarray(labels, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(images[chosen]).tobytes())
    return {"shape": list(images.shape), "dtype": str(images.dtype), "sha256": digest.hexdigest()}
