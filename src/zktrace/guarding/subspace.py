"""The subspace of a code, in which a federation never trains.

Copies of a round are w + a t along the n directions of the release, tensor by tensor. Whatever an aggregate
of what comes back has along them - marks, what weight decay or gradients made of marks, what somebody put
there - is taken out again:

    w'  =  agg - sum over b of phi_b(agg - w_0) times the unit move of b            in each tensor by itself

so phi(w') = phi(w_0) for the shared model of every round, as exactly as float32 goes. Nobody in particular is
subtracted, and no row enters.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.hadamard import Singles
from zktrace.primitives.pipeline import in_order
from zktrace.primitives.room import room_for
from zktrace.primitives.text import shown
from zktrace.readouts.blocks import Blocks, Differences, Part
from zktrace.readouts.directions import Floats
from zktrace.readouts.flow import Flow
from zktrace.readouts.scales import Arrays, shape_of

NdArrays = Mapping[str, NDArray[Any]]
ROUNDING: Final = 1e-7  # of what is taken out: what float32 may leave of it,
LEFT: Final = 1e-6  # and deviations that may be left
_PASSES: Final = 4


def check_alike(arrays: NdArrays, shared: Arrays) -> None:
    """InputError unless the tensors are those that the guard began with, in their shapes."""
    for name in sorted(set(arrays) ^ set(shared)):
        fault = "is new" if name in arrays else "is gone"
        raise InputError(f"the tensor {shown(name)} {fault}: a guard keeps to the model it began with")
    for name in shared:
        given, wanted = np.shape(arrays[name]), shape_of(shared, name)
        if given != wanted:
            raise InputError(
                f"the tensor {shown(name)} has the shape {given}, it was {wanted}: "
                "a guard keeps to the model it began with"
            )


def readings(
    arrays: NdArrays, shared: Arrays, parts: Mapping[str, Part], blocks: Blocks
) -> dict[str, Floats]:
    """phi of tensors beyond the first shared model's, in deviations."""

    def differences(part: Part) -> Callable[[int], Differences]:
        ours, theirs = Flow(arrays, part.name), Flow(shared, part.name)

        def taken(count: int) -> Differences:
            some, others = ours.take(count), theirs.take(count)
            wide = np.float64 if some.dtype == np.float64 else np.float32

            def at(place: slice) -> Singles:
                found: NDArray[Any] = np.subtract(some[place], others[place], dtype=wide)
                return found.astype(np.float32, copy=False)

            return at

        return taken

    found = blocks.readings((part, differences(part)) for part in parts.values())
    return {name: values / parts[name].deviation for name, values in found.items()}


def taken_out(
    arrays: NdArrays, shared: Arrays, parts: Mapping[str, Part], blocks: Blocks
) -> dict[str, NDArray[Any]]:
    """The tensors that carry, without what they have along the directions beyond the first shared model.

    A float16 comes back as a float32, which is what the condition can be kept in.
    """
    given = {name: _flat(arrays[name]) for name in parts}
    made = room_for({name: (each.size, each.dtype) for name, each in given.items()})
    left = dict(parts)
    for _ in range(_PASSES):
        values = readings(given, shared, left, blocks)
        _check_finite(given, values, left, blocks)
        _move(given, made, values, left, blocks)
        given = made
        left = {name: part for name, part in left.items() if ROUNDING * _size(values[name]) > LEFT}
        if not left:
            break
    return {name: each.reshape(arrays[name].shape) for name, each in made.items()}


def _check_finite(
    given: NdArrays, values: Mapping[str, Floats], parts: Mapping[str, Part], blocks: Blocks
) -> None:
    """InputError if a number is not finite: one that is not makes every reading so, and so do numbers whose
    sums overflow. What comes after the last block is not read."""
    for name, part in parts.items():
        rest = given[name][part.blocks * blocks.length :]
        if not (np.isfinite(values[name]).all() and np.isfinite(rest).all()):
            raise InputError(
                f"the tensor {shown(name)} has numbers that are not finite, or too large to be added up: "
                "nothing is aggregated"
            )


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    wide = np.float64 if array.dtype == np.float64 else np.float32
    return np.ascontiguousarray(array, dtype=wide).reshape(-1)


def _size(values: Floats) -> float:
    return float(np.sqrt(np.mean(values * values)))


def _move(
    given: NdArrays, made: NdArrays, values: Mapping[str, Floats], parts: Mapping[str, Part], blocks: Blocks
) -> None:
    """Tensors less their values along the directions; what is made may be what is given."""
    length = blocks.length

    def move(part: Part, piece: tuple[int, int]) -> None:
        place = slice(piece[0] * length, (piece[0] + piece[1]) * length)
        some, out = given[part.name][place], made[part.name][place]
        for at, step in blocks.move(part, piece, -values[part.name], part.deviation):
            np.add(some[at], step, out=out[at])

    pieces = ((part, piece) for part in parts.values() for piece in blocks.pieces(part))
    for _ in in_order(lambda each: move(*each), pieces):
        pass
    for name, part in parts.items():
        rest = slice(part.blocks * length, None)
        made[name][rest] = given[name][rest]
