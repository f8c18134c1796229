"""safetensors files: mapped and checked, never copied."""

import mmap

from safetensors import SafetensorError, safe_open

from zktrace.errors import MalformedModel, Refused
from zktrace.models.limits import Limits
from zktrace.models.safetensors_header import parse_header
from zktrace.models.state import ModelState, Tensor
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
