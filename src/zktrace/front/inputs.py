"""Inputs and labels of the operator's own, as they are handed in: arrays, an npz file, a folder of arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded, MalformedFile, Refused
from zktrace.models import open_model
from zktrace.primitives.text import one_line
from zktrace.readouts.samples import Pool

Inputs = str | Path | Mapping[str, Any] | tuple[Any, Any]  # a file or folder, named arrays, or the two arrays
Array = NDArray[Any]

LIMIT: Final = 1 << 31  # bytes of all inputs in float32
_NAMES: Final = ("inputs", "labels")


def pool_of(given: Inputs) -> Pool:
    """The samples as a pool: inputs (n, ...) in float32, a whole number for each as its label."""
    inputs, labels = _arrays(given)
    made = _checked(inputs)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != len(made):
        raise InputError(
            f"labels are a whole number for each input: {labels.dtype} {labels.shape} for {len(made)} inputs"
        )
    note = f"{len(labels)} samples of {Path(given).name if isinstance(given, str | Path) else 'arrays'}"
    return Pool(images=made, labels=labels.astype(np.int64), episodes={}, note=note)


def _arrays(given: Inputs) -> tuple[Array, Array]:
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InputError(f"inputs are given with their labels: two arrays, not {len(given)}")
        return np.asarray(given[0]), np.asarray(given[1])
    if isinstance(given, str | Path):
        path = Path(given)
        found = _folder(path) if path.is_dir() else open_model(path)
    elif isinstance(given, Mapping):
        found = {name: np.asarray(value) for name, value in given.items()}
    else:
        raise InputError(f"inputs are a path or arrays, not {type(given).__name__}")
    for name in _NAMES:
        if name not in found:
            where = f"{given}: " if isinstance(given, str | Path) else ""
            raise InputError(f"{where}there is no array {name!r}; arrays are called {' and '.join(_NAMES)}")
    return found["inputs"], found["labels"]


def _folder(path: Path) -> dict[str, Array]:
    return {name: _npy(path / f"{name}.npy") for name in _NAMES if (path / f"{name}.npy").exists()}


def _npy(path: Path) -> Array:
    """A view of the file; nothing in it is executed."""
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise MalformedFile(f"{path}: not an npy file ({one_line(str(error), limit=100)})") from error
    except OSError as error:
        raise Refused(f"{path}: cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    return found


def _checked(inputs: Array) -> NDArray[np.float32]:
    if inputs.ndim < 2 or inputs.dtype.kind not in "fiu" or not inputs.size:
        raise InputError(f"inputs are numbers, (n, ...): {inputs.dtype} {inputs.shape}")
    if 4 * inputs.size > LIMIT:
        raise LimitExceeded(f"inputs of {4 * inputs.size} bytes in float32, the limit is {LIMIT}")
    made = np.ascontiguousarray(inputs, dtype=np.float32)
    if not np.isfinite(made).all():
        raise InputError("inputs have numbers that are not finite")
    return made
