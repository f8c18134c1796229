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
from zktrace.primitives.text import shown
from zktrace.readouts.blocks import Blocks, Part
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


def reading(array: NDArray[Any], shared: Arrays, part: Part, blocks: Blocks) -> Floats:
    """phi of a tensor beyond the first shared model's, in deviations."""
    ours, theirs = Flow({part.name: array}, part.name), Flow(shared, part.name)

    def differences(count: int) -> Callable[[], Singles]:
        some, others = ours.take(count), theirs.take(count)

        def made() -> Singles:
            wide = np.subtract(some, others, dtype=np.float64 if some.dtype == np.float64 else np.float32)
            wide /= wide.dtype.type(part.deviation)
            found: Singles = wide.astype(np.float32, copy=False)
            return found

        return made

    return blocks.readings(part, differences)


def taken_out(array: NDArray[Any], shared: Arrays, part: Part, blocks: Blocks) -> NDArray[Any]:
    """A tensor without what it has along the directions beyond the first shared model.

    A float16 comes back as a float32, which is what the condition can be kept in.
    """
    kept = np.ascontiguousarray(array, dtype=np.float64 if array.dtype == np.float64 else np.float32)
    if not np.isfinite(kept).all():
        raise InputError(
            f"the tensor {shown(part.name)} has numbers that are not finite: nothing is aggregated"
        )
    for _ in range(_PASSES):
        values = reading(kept, shared, part, blocks)
        kept = _moved(kept, -values, part, blocks)
        if ROUNDING * float(np.sqrt(np.mean(values * values))) <= LEFT:
            break
    return kept


def _moved(array: NDArray[Any], values: Floats, part: Part, blocks: Blocks) -> NDArray[Any]:
    flat, length = array.reshape(-1), blocks.length
    made = np.empty_like(flat)

    def move(piece: tuple[int, int]) -> None:
        place = slice(piece[0] * length, (piece[0] + piece[1]) * length)
        np.add(flat[place], blocks.move(part, piece, values, part.deviation), out=made[place])

    for _ in in_order(move, blocks.pieces(part)):
        pass
    rest = slice(part.blocks * length, None)
    made[rest] = flat[rest]
    return made.reshape(array.shape)
