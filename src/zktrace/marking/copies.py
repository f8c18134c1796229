"""Between arrays that training changed and a copy that a station gets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.models import ModelState, Tensor


def copy_rng(model: bytes, row: int) -> np.random.Generator:
    """Batches and episodes of a row's copy: a repeated copy is the same. No secret enters a generator."""
    return np.random.default_rng([*model, row])


def merged(shared: ModelState, trained: Mapping[str, NDArray[Any]], names: Mapping[str, str]) -> ModelState:
    """`shared` with the arrays that training changed: same names, same order, same element types.

    `names`: what the network calls its arrays, and what the state does.
    """
    given = {name: inside for inside, name in names.items()}
    return ModelState(_merged(each, trained.get(given.get(each.name, ""))) for each in shared.tensors())


def _merged(tensor: Tensor, new: NDArray[Any] | None) -> Tensor:
    if new is None:
        return tensor
    old = tensor.array()
    rounded = new.astype(old.dtype)
    return tensor if np.array_equal(rounded, old) else Tensor.from_array(tensor.name, rounded)
