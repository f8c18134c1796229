"""safetensors files: mapped and checked, never copied; written whole or not at all."""

import mmap
import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from safetensors import SafetensorError, safe_open

from zktrace.errors import MalformedModel, Refused
from zktrace.models.dtypes import BY_TAG
from zktrace.models.limits import Limits
from zktrace.models.safetensors_header import Slot, build_header, file_order, parse_header
from zktrace.models.state import Array, ModelState, Tensor
from zktrace.primitives.files import write_atomic
from zktrace.primitives.text import one_line


def map_file(descriptor: int) -> memoryview:
    """A read-only view of a whole file that is not empty. It outlives the descriptor and the file's name."""
    try:
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise Refused("cannot be mapped into memory") from error


def open_safetensors(descriptor: int, data: memoryview, limits: Limits) -> ModelState:
    """The state in a mapped safetensors file that this room and the safetensors library both find valid."""
    state = read_safetensors(data, limits)
    _library_agrees(descriptor, state)
    return state


def read_safetensors(data: memoryview, limits: Limits) -> ModelState:
    """The state in the bytes of a whole safetensors file, as views of them."""
    begin, places = parse_header(data, limits)
    return ModelState(
        Tensor(
            name=place.name,
            dtype=place.dtype.tag,
            shape=place.shape,
            data=data[begin + place.start : begin + place.stop],
        )
        for place in places
    )


def _library_agrees(descriptor: int, state: ModelState) -> None:
    """A file that we read and others refuse, or read differently, would be a dispute in waiting.

    The library opens the same inode, not the same path, after our own checks have bounded what it parses.
    """
    try:
        with safe_open(f"/dev/fd/{descriptor}", framework="numpy") as other:
            names = set(other.keys())
    except (SafetensorError, OSError) as error:
        raise MalformedModel(
            f"the safetensors library refuses it: {one_line(str(error), limit=200)}"
        ) from error
    if names != set(state):
        raise MalformedModel("the safetensors library finds other tensors in it")


def save_model(
    path: str | os.PathLike[str],
    state: Mapping[str, Array],
    *,
    metadata: Mapping[str, str] | None = None,
    secret: bool = False,
    replace: bool = False,
) -> None:
    """Write a `ModelState`, or numpy arrays by name, as a safetensors file: complete, or not there.

    The bytes depend on the state and the metadata only. The metadata is not covered by the model's digest.
    A secret file has mode 0600.
    """
    full = state if isinstance(state, ModelState) else ModelState.from_arrays(state)
    tensors = {tensor.name: tensor for tensor in full.tensors()}
    layouts = sorted((_layout(tensor) for tensor in tensors.values()), key=file_order)
    pieces = (tensors[layout.name].data for layout in layouts)
    header = build_header(layouts, metadata)
    write_atomic(Path(path), chain((header,), pieces), secret=secret, replace=replace)


def _layout(tensor: Tensor) -> Slot:
    return Slot(name=tensor.name, dtype=BY_TAG[tensor.dtype], shape=tensor.shape, size=len(tensor.data))
