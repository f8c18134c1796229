"""What people hand in: a model as a path, as arrays or as a torch state; a budget as they write it."""

import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.models import ModelState, Tensor, open_model
from zktrace.primitives.exact import exact_budget
from zktrace.primitives.text import shown
from zktrace.readouts.network import Network

Model = str | Path | Mapping[str, Any]  # a file, or named arrays: numpy's or torch's
Budget = str | int | float | Fraction
NetworkGiven = Network | Callable[[], Any]  # what makes a torch module
T = TypeVar("T")


def as_state(model: Model) -> ModelState:
    """A model that was handed in, or InputError. Arrays are copied, files are viewed."""
    if isinstance(model, ModelState):
        return model
    if isinstance(model, str | Path):
        return open_model(Path(model))
    if not isinstance(model, Mapping):
        raise InputError(f"a model is a path or a mapping of arrays, not {type(model).__name__}")
    return ModelState(_tensor(name, value) for name, value in model.items())


def _tensor(name: object, value: Any) -> Tensor:  # noqa: ANN401
    if not isinstance(name, str):
        raise InputError(f"arrays of a model have names, not {name!r}")
    if not hasattr(value, "detach"):
        return Tensor.from_array(name, np.asarray(value))
    try:
        return _torch_tensor(name, value)
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        what = shown(str(error).partition("\n")[0])
        raise InputError(f"{shown(name)}: a tensor that cannot be read ({what})") from None


def _torch_tensor(name: str, value: Any) -> Tensor:  # noqa: ANN401
    """A tensor of torch's, which is not imported for it."""
    found = value.detach().cpu().contiguous()
    if str(found.dtype) == "torch.bfloat16":  # which numpy does not have
        bits: NDArray[Any] = found.view(sys.modules["torch"].int16).numpy()
        return Tensor(name=name, dtype="bfloat16", shape=tuple(found.shape), data=memoryview(bits.tobytes()))
    return Tensor.from_array(name, found.numpy())


def as_network(given: NetworkGiven | None) -> Network | None:
    """A network of one's own: a function that makes its module, or that with where its features are."""
    return given if given is None or isinstance(given, Network) else Network(given)


def as_budget(given: Budget) -> Fraction:
    """A probability as people write it (0.01, 1e-3, 1/100), as the exact number it says."""
    return given if isinstance(given, Fraction) else exact_budget(str(given))


def check_kind(value: T, kind: type | tuple[type, ...], what: str) -> T:
    """The value, if it is of a kind that is taken; else InputError."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        raise InputError(f"{what} is given as {names}, not as {type(value).__name__}")
    return value
