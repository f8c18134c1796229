"""A model's state as numpy arrays by name, and back."""

import numpy as np
import torch
from torch import nn

from zktrace.errors import InputError
from zktrace.learning.arrays import Array, Arrays, State

HEAD = "fc."  # torchvision's last layer, which only suspects have here


def state_of(model: nn.Module) -> State:
    """Parameters and buffers by name, in the model's order: copies in C order, element types unchanged."""
    return {name: _copy(value) for name, value in model.state_dict().items()}


def _copy(value: torch.Tensor) -> Array:
    return np.array(value.detach().cpu().numpy(), order="C", copy=True)


def load_state(model: nn.Module, state: Arrays) -> None:
    """Put arrays into a model of the same architecture. Entries of a last layer (`fc.*`) are passed over
    unless the model has one.

    Nothing is loaded unless everything fits. Arrays are converted to the model's element types.
    """
    wanted = model.state_dict()
    given = {name for name in state if not name.startswith(HEAD) or name in wanted}
    missing, strange = sorted(set(wanted) - given), sorted(given - set(wanted))
    if missing:
        raise InputError(f"the state lacks {missing[0]!r}{_more(missing)}: another architecture?")
    if strange:
        raise InputError(
            f"the state has {strange[0]!r}{_more(strange)}, the model has not: another architecture?"
        )
    for name, value in wanted.items():
        if state[name].shape != tuple(value.shape):
            raise InputError(f"{name!r} has shape {state[name].shape}, the model needs {tuple(value.shape)}")
    with torch.no_grad():
        for name, value in wanted.items():
            value.copy_(torch.from_numpy(np.array(state[name])))


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
