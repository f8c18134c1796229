"""A transformer's rotated residual stream, turned back.

RMSNorm does not see rotations, so a leaker may write its scales g into the matrices behind it and turn the
stream by any orthogonal Q. What reads the stream becomes W diag(g) Q, what writes it Q^T W. One side of some
tensors cannot be touched: tokens of an embedding, places, pixels, classes. So

(1) Anchors: tensors whose products between such fixed rows are the shared model's. These do not depend on Q;
    if they do on g, its squares are fitted to them.
(2) The rotation that brings the anchors nearest to the shared model's (Procrustes).
(3) With it, other tensors are put back (`realigning`), and those that fit join the anchors: where an
    embedding has few tokens, the rotation comes from all matrices together.

Then a tensor is turned back on the side whose size is the stream's, on the other side or not at all,
whichever leaves the least; permuted and rescaled rows and columns are put back with it.

The reference is the shared model. Rows, keys and directions play no part.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.text import shown
from zktrace.readouts.directions import Floats
from zktrace.readouts.linear_maps import nearest_rotation
from zktrace.readouts.realigning import Aligned, Tensors, align_tensor, best_fit, comparable
from zktrace.readouts.scales import Arrays, shape_of

WIDEST: Final = 8192  # numbers of a stream that is turned back
_SOME: Final = 512  # rows whose products are compared
_FEWEST: Final = 8
_OVER: Final = 8  # times as many products as scales, for these to be fitted
_SAME: Final = 0.3  # of the products: at most so far apart are those of an anchor
_FITS: Final = 0.7  # residual under which a tensor joins the anchors
_ENOUGH: Final = 16  # rows a number of the stream: with so many, no more anchors are looked for
_JOINING: Final = 64  # tensors at most that join,
_LARGEST: Final = 1 << 22  # of at most so many numbers
_ROUNDS: Final = 2
_NEAR: Final = 0.2  # residual with which no other side is tried


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Anchor:
    """Rows over the stream, of the suspect and as the shared model has them, scales of norms included."""

    theirs: Floats
    ours: Floats


def unrotated(suspect: Arrays, shared: Arrays, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The named tensors of a suspect with its stream turned back, each in the shared model's coordinates.

    Made one at a time. InputError if nothing of the suspect tells how the stream was turned; names that
    either lacks, or has in another shape, are left out.
    """
    usable = comparable(suspect, shared, names)
    turn = _turn(suspect, shared, comparable(suspect, shared, shared))

    def make(name: str) -> NDArray[Any]:
        try:
            return _nearest(suspect[name], shared[name], turn).array
        except InputError as error:
            raise InputError(f"{shown(name)}: {error}") from None

    return Tensors(usable, make, shared)


def _turn(suspect: Arrays, shared: Arrays, names: Sequence[str]) -> Floats:
    """The matrix that turns the suspect's stream into the shared model's: rows x -> x turn."""
    found: dict[int, dict[str, _Anchor]] = {}
    for name in names:
        for anchor in _anchors(suspect[name], shared[name]):
            found.setdefault(anchor.ours.shape[1], {})[name] = anchor
    if not found:
        raise InputError("no tensor of the suspect tells how its stream was turned")
    width = max(found, key=lambda size: (sum(len(each.ours) for each in found[size].values()), size))
    anchors = found[width]
    turn = _fitted(anchors.values(), width)
    rest = [each for each in names if each not in anchors and width in shape_of(shared, each)]
    rest = [each for each in rest if math.prod(shape_of(shared, each)) <= _LARGEST][:_JOINING]
    if sum(len(each.ours) for each in anchors.values()) >= _ENOUGH * width:
        return turn
    for _ in range(_ROUNDS):
        joining = (_joining(suspect[name], shared[name], turn) for name in rest)
        turn = _fitted([*anchors.values(), *filter(None, joining)], width)
    return turn


def _fitted(anchors: Iterable[_Anchor], width: int) -> Floats:
    """Step (2): every anchor's rows count by their number, not by their size."""
    product = np.zeros((width, width))
    for each in anchors:
        product += each.theirs.T @ each.ours / np.mean(np.square(each.ours))
    turn = nearest_rotation(product)
    if not np.isfinite(turn).all():
        raise InputError("the suspect's numbers are too large to be turned back")
    return turn


def _sides(array: NDArray[Any]) -> Iterator[tuple[int, Floats]]:
    """A tensor as rows over what may be the stream: its second axis or its first."""
    matrix = _matrix(array)
    for axis in (1, 0):
        rows = matrix if axis else matrix.T
        if 1 < rows.shape[1] <= WIDEST and (axis == 0 or array.ndim == 2 or array.shape[0] == 1):
            yield axis, rows


def _matrix(array: NDArray[Any]) -> Floats:
    """In two axes: leading ones dropped, a kernel's places beside its inputs."""
    shape = array.shape
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return array.reshape(shape[0], -1).astype(np.float64)


def _anchors(given: NDArray[Any], wanted: NDArray[Any]) -> Iterator[_Anchor]:
    """Step (1), for either side of a tensor."""
    if any(each.dtype.kind != "f" or not np.isfinite(each).all() for each in (given, wanted)):
        return
    for (_, theirs), (_, ours) in zip(_sides(given), _sides(wanted), strict=True):
        count = min(len(ours), _SOME)
        if count < _FEWEST:
            continue
        chosen = np.arange(count) * len(ours) // count
        scales = _scales(theirs[chosen], ours[chosen])
        if scales is not None:
            yield _Anchor(theirs=theirs, ours=ours * scales)


def _scales(theirs: Floats, ours: Floats) -> Floats | None:
    """Scales under which both have the same products between rows, if there are any: 1, or fitted ones."""
    wanted = theirs @ theirs.T
    ones = np.ones(ours.shape[1])
    if _off(wanted, ours, ones) < _SAME:
        return ones
    rows, width = ours.shape
    if rows * (rows - 1) < _OVER * width:
        return None
    inner, own = ours.T @ ours, ours**2
    left = inner**2 - own.T @ own  # of the products between different rows alone
    right = np.einsum("ij,ij->j", ours, wanted @ ours) - own.T @ np.diagonal(wanted)
    found = np.sqrt(np.maximum(np.linalg.lstsq(left, right, rcond=1e-9)[0], 0.0))
    return found if _off(wanted, ours, found) < _SAME else None


def _off(wanted: Floats, ours: Floats, scales: Floats) -> float:
    """How far products between different rows are apart, as a part of the shared model's."""
    found = (ours * scales**2) @ ours.T
    apart, size = wanted - found, found.copy()
    np.fill_diagonal(apart, 0.0)
    np.fill_diagonal(size, 0.0)
    whole = float(np.linalg.norm(size))
    return float(np.linalg.norm(apart)) / whole if whole > 0 else math.inf


def _joining(given: NDArray[Any], wanted: NDArray[Any], turn: Floats) -> _Anchor | None:
    """Step (3): a tensor that fits on one of its sides, its rows in their places and at their sizes."""
    best, found = _FITS, None
    for (_, theirs), (_, ours) in zip(_sides(given), _sides(wanted), strict=True):
        if ours.shape[1] != len(turn):
            continue
        places, sizes = best_fit((theirs @ turn)[:, :, None], ours[:, :, None])
        left = math.sqrt(sizes.left / max(float(np.square(ours).sum()), 1e-300))
        still = np.array_equal(places.columns, np.arange(len(turn)))
        if left < best and still and (np.abs(sizes.columns) > 0).all():
            rows = theirs[places.rows] * sizes.rows[:, None]
            best, found = left, _Anchor(theirs=rows, ours=ours / sizes.columns)
    return found


def _nearest(given: NDArray[Any], wanted: NDArray[Any], turn: Floats) -> Aligned:
    """A tensor turned on either side or on none, and aligned: what leaves the least."""
    best = None
    for axis, rows in _sides(given) if given.shape == wanted.shape else ():
        if rows.shape[1] == len(turn):
            turned = rows @ turn
            found = align_tensor((turned if axis else turned.T).reshape(given.shape), wanted)
            best = found if best is None or found.residual < best.residual else best
            if best.residual < _NEAR:
                return best
    plain = align_tensor(given, wanted)
    return plain if best is None or plain.residual < best.residual else best
