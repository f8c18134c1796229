"""The output carrier as a tracer or a judge reads it: class scores of probes, and nothing else of a model.

    m_b = r^(-1/2) sum_(i < r) <u_(j, i), A(scores(p_j)) - reference scores(p_j)>
    with j = b - i*floor(n/r) mod n

The u_(j, i) of a probe are r orthonormal directions whose coordinates add up to 0, and are 0 for the classes
that the shared model ranks highest at that probe: what it decides is left alone, what it says of all others
carries bits. Every bit stands at r probes and every probe carries r bits, so what a copy says of one image
and what a student gets wrong of it weigh little in any of them. A is the affine map closest to the
reference, by least squares over all probes: one slope for all scores, one offset a class. A constant that is
added to all scores of one probe is taken out first: no softmax sees it, so logits and log-probabilities are
read alike. The fit knows the two matrices and no row. A score file is a hostile file.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, MalformedModel
from zktrace.models import Limits, ModelState, open_model
from zktrace.primitives.text import shown
from zktrace.readouts.directions import Directions, Floats

LABEL: Final = "output"
SPARED: Final = 3
RANK: Final = 6
CLASSES_LIMIT: Final = 4096
ROWS_LIMIT: Final = 1 << 17
_PART: Final = 256  # probes whose directions are made at a time
_DOMAIN: Final = b"zkt-scores-v1"
_FILE: Final = Limits(max_file_bytes=1 << 28, max_total_bytes=1 << 28, max_tensors=1, max_dims=2)


def spared(classes: int) -> int:
    """How many classes, from the highest on, carry nothing: a third of them, at most SPARED."""
    return min(SPARED, classes // 3)


def rank(classes: int) -> int:
    """r: directions a probe, at most RANK."""
    if classes < 2:
        raise InputError(f"scores of {classes} classes carry nothing: at least 2 are needed")
    return min(RANK, classes - spared(classes) - 1)


def output_frames(seed: bytes, reference: Floats) -> Floats:
    """The directions u as (probes, r, classes), for reference scores (probes, classes).

    Gram-Schmidt over r directions, uniform on the unit sphere of zero-sum scores of the lower classes.
    """
    return np.concatenate(list(_frames(seed, reference)))


def _frames(seed: bytes, reference: Floats) -> Iterator[Floats]:
    """Part by part: with thousands of classes, all of them would be gigabytes."""
    length, classes = reference.shape
    many, lower = rank(classes), classes - spared(classes)
    family = Directions(label=LABEL, seed=seed, dimension=lower - 1, count=length * many)
    for start in range(0, length, _PART):
        ranks = np.argsort(-reference[start : start + _PART], axis=1, kind="stable")[:, classes - lower :]
        stop = start + len(ranks)
        drawn = family.block(start * many, stop * many).reshape(len(ranks), many, lower - 1)
        found: Floats = np.zeros((len(ranks), many, classes))
        places = np.broadcast_to(ranks[:, None, :], (len(ranks), many, lower))
        np.put_along_axis(found, places, _orthonormal(drawn) @ _zero_sum_basis(lower), axis=2)
        yield found


def _orthonormal(drawn: Floats) -> Floats:
    """Of (frames, r, d): each direction less what lies along those before it, twice for the rounding."""
    found = drawn.copy()
    for i in range(found.shape[1]):
        for _ in range(2):
            along = np.einsum("jid,jd->ji", found[:, :i], found[:, i])
            found[:, i] -= np.einsum("ji,jid->jd", along, found[:, :i])
        found[:, i] /= np.linalg.norm(found[:, i], axis=1, keepdims=True)
    return found


def gathered(values: Floats) -> Floats:
    """One value a bit, from (probes, r) values along the directions of the probes."""
    length, many = values.shape
    total: Floats = sum(
        (np.roll(values[:, i], i * (length // many)) for i in range(many)), start=np.zeros(length)
    )
    found: Floats = total / np.sqrt(many)
    return found


def scattered(word: NDArray[Any], many: int) -> NDArray[Any]:
    """The bits that the directions of the probes carry, as (probes, r): the way back from `gathered`."""
    return np.stack([np.roll(word, -i * (len(word) // many)) for i in range(many)], axis=1)


def _zero_sum_basis(classes: int) -> Floats:
    """Orthonormal rows that add up to 0 (Helmert): k ones, then -k, normalised."""
    rows = np.zeros((classes - 1, classes))
    for k in range(1, classes):
        rows[k - 1, :k] = 1.0
        rows[k - 1, k] = -k
        rows[k - 1] /= np.sqrt(k * (k + 1.0))
    return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputReader:
    """Reads `length` values from a matrix of scores, one row a probe. Made without any row of a code."""

    seed: bytes
    length: int
    classes: int
    reference: Floats  # the shared model's scores, row after row in one vector

    def __post_init__(self) -> None:
        if self.reference.shape != (self.length * self.classes,) or not np.isfinite(self.reference).all():
            raise InputError(
                f"a reference must be {self.length} x {self.classes} finite scores in one row, "
                f"not of shape {self.reference.shape}"
            )

    def read_scores(self, scores: NDArray[Any]) -> Floats:
        """The readout of a suspect that gave these scores."""
        given = check_scores(scores)
        if given.shape != (self.length, self.classes):
            raise InputError(
                f"scores of shape {given.shape}, the release has {self.length} probes and "
                f"{self.classes} classes"
            )
        reference = self.reference.reshape(self.length, self.classes)
        difference = fitted(given, reference) - _centred(reference)
        parts, values = _frames(self.seed, reference), []
        for start, frames in zip(range(0, self.length, _PART), parts, strict=True):
            values.append(np.einsum("jik,jk->ji", frames, difference[start : start + _PART]))
        return gathered(np.concatenate(values))


def fitted(scores: Floats, reference: Floats) -> Floats:
    """A(scores), rows centred: closest to the reference with one slope and an offset a class."""
    largest = float(np.abs(scores).max())
    own = _centred(scores / largest) if largest > 0 else scores  # in a unit of its own: no square overflows
    wanted = _centred(reference)
    moved, target = own - own.mean(axis=0), wanted - wanted.mean(axis=0)
    size = float((moved * moved).sum())
    if not size > (1e-12 * max(1.0, float(np.abs(own).max()))) ** 2:
        raise InputError("the scores are the same for all probes: there is nothing to read")
    slope = float((moved * target).sum()) / size
    found: Floats = slope * moved + wanted.mean(axis=0)
    return found


def _centred(scores: Floats) -> Floats:
    found: Floats = scores - scores.mean(axis=1, keepdims=True)
    return found


def check_scores(scores: NDArray[Any]) -> Floats:
    """A matrix of finite real scores within bounds, in float64; InputError for anything else."""
    if scores.ndim != 2 or scores.dtype.kind != "f":
        raise InputError(
            f"scores must be one matrix of real numbers, probes x classes, "
            f"not of shape {scores.shape} and type {scores.dtype}"
        )
    if not 1 <= scores.shape[0] <= ROWS_LIMIT or not 2 <= scores.shape[1] <= CLASSES_LIMIT:
        raise InputError(
            f"scores of shape {scores.shape}: 1..{ROWS_LIMIT} rows and 2..{CLASSES_LIMIT} classes are read"
        )
    found = scores.astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError("a score is not finite")
    return found


def scores_digest(scores: NDArray[Any]) -> bytes:
    """SHA-256 over a domain, the two sizes and the scores in float64: the digest of a queried suspect."""
    given = check_scores(scores)
    sizes = b"".join(size.to_bytes(8, "big") for size in given.shape)
    return hashlib.sha256(_DOMAIN + sizes + given.astype(">f8").tobytes()).digest()


def read_matrix(path: Path) -> NDArray[Any]:
    """The one array of a safetensors or npz file, as it is."""
    state: ModelState = open_model(path, _FILE)
    names = list(state)
    if len(names) != 1:
        raise MalformedModel(f"{path}: {len(names)} arrays, a file of scores has one")
    try:
        check_scores(state[names[0]])
    except InputError as error:
        raise MalformedModel(f"{path}: {shown(names[0])}: {error}") from None
    return state[names[0]]
