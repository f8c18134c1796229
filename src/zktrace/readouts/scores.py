"""The output carrier as a tracer or a judge reads it: class scores of probes, and nothing else of a model.

    m_b = r^(-1/2) sum_(i < r) <u_(j, i), d_j>    with j = b - i*floor(n/r) mod n

The u_(j, i) of a probe are r orthonormal directions whose coordinates add up to 0, and are 0 for the classes
that the shared model ranks highest at that probe: what it decides is left alone, what it says of all others
carries bits. Every bit stands at r probes and every probe carries r bits, so what a copy says of one image
and what a student gets wrong of it weigh little in any of them.

d_j is what the suspect's scores at probe j have beyond the shared model's (`differences`): the affine map of
these that comes closest is taken out, and what is left counts less along errors that classes share and at
probes where everything is off. A constant that is added to all scores of one probe is taken out first: no
softmax sees it, so logits and log-probabilities are read alike. All of it knows the two matrices and no row.
A score file is a hostile file.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded, MalformedModel
from zktrace.models import Limits, ModelState, open_model
from zktrace.primitives.text import shown
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.fits import ridge

SPARED: Final = 3
RANK: Final = 6
CLASSES_LIMIT: Final = 4096
ROWS_LIMIT: Final = 1 << 17
SCORES_LIMIT: Final = 1 << 24  # rows times classes
_FULL: Final = 256  # classes up to which scores of one may be fitted by those of another
_PULL: Final = 0.1  # of the fit towards one slope, in mean variances of a class
_SHARED: Final = 0.3  # of the mean variance, added to each: errors are not known that well
_ROUNDING: Final = 0.01  # deviations of the reference: errors below it are taken for as large
PARTS: Final = 8  # of probes, that a head is fitted without
_HEAD: Final = 0.3  # pull of that fit, in mean variances of a feature
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
    family = Directions(label="output", seed=seed, dimension=lower - 1, count=length * many)
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


def score_readout(seed: bytes, scores: Floats, reference: Floats) -> Floats:
    """The readout of a suspect that gave these scores, for the shared model's (both probes x classes)."""
    difference = differences(scores, reference)
    parts, values = _frames(seed, reference), []
    for start, frames in zip(range(0, len(reference), _PART), parts, strict=True):
        values.append(np.einsum("jik,jk->ji", frames, difference[start : start + _PART]))
    return gathered(np.concatenate(values))


def differences(scores: Floats, reference: Floats) -> Floats:
    """d: what scores have beyond the reference, in units of it.

    1. Both are centred, by rows and by columns, and divided by their deviation.
    2. Less the affine map of the reference closest to the scores: one slope, and, pulled towards it by a
       ridge, a matrix from classes to classes.
    3. Times C^(-1/2), C the covariance of what is left: directions in which all is noise count less.
    4. Row by row divided by sqrt(|d|^2 + median^2): so do probes at which a suspect is far off.
    """
    wanted, spread = _standard(reference, "the shared model gives all probes the same scores")
    own, _ = _standard(scores, "the scores are the same for all probes: there is nothing to read")
    slope = float((own * wanted).mean())
    left = own - slope * wanted
    if reference.shape[1] <= _FULL:
        left = _whitened(left - wanted @ ridge(wanted, left, pull=_PULL))
    sizes = np.linalg.norm(left, axis=1, keepdims=True)
    typical = max(float(np.median(sizes)), _ROUNDING)
    found: Floats = np.copysign(spread, slope) * left / np.sqrt(sizes**2 + typical**2)
    return found


def _standard(scores: Floats, otherwise: str) -> tuple[Floats, float]:
    """Scores centred by rows and columns, of mean square 1, and the deviation they had."""
    largest = float(np.abs(scores).max())
    small = scores / largest if largest > 0 else scores  # in a unit of its own: no square overflows
    rows: Floats = small - small.mean(axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    size = float(np.sqrt((rows * rows).mean()))
    if not size > 1e-12:
        raise InputError(otherwise)
    return rows / size, size * largest


def _whitened(rows: Floats) -> Floats:
    covariance = rows.T @ rows / len(rows)
    floor = _SHARED * float(np.trace(covariance)) / len(covariance) + _ROUNDING**2
    values, vectors = np.linalg.eigh(covariance)
    found: Floats = rows @ (vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T
    return found


def headed(features: Floats, reference: Floats) -> Floats:
    """Scores of a suspect that has none, by the linear map from its features to the reference's scores.

    Probes are cut into PARTS by their numbers; the map of each part is fitted on all others, so no probe's
    own reference, nor what the suspect says beyond it, enters its scores.
    """
    found: Floats = np.empty_like(reference)
    part = np.arange(len(reference)) % PARTS
    for each in range(PARTS):
        others, here = part != each, part == each
        origin, target = features[others].mean(axis=0), reference[others].mean(axis=0)
        with np.errstate(all="ignore"):  # what overflows is refused below
            matrix = ridge(features[others] - origin, reference[others] - target, pull=_HEAD)
            found[here] = (features[here] - origin) @ matrix + target
    if not np.isfinite(found).all():
        raise InputError("the suspect's features are too large to be given a head")
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
    if scores.size > SCORES_LIMIT:
        raise LimitExceeded(f"{scores.size} scores, at most {SCORES_LIMIT} are read")
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
    """The scores in a safetensors or npz file, as they are."""
    found, name = read_array(path)
    try:
        check_scores(found)
    except InputError as error:
        raise MalformedModel(f"{path}: {shown(name)}: {error}") from None
    return found


def read_array(path: Path) -> tuple[NDArray[Any], str]:
    """The one array of such a file, of answers of some kind, and its name."""
    state: ModelState = open_model(path, _FILE)
    names = list(state)
    if len(names) != 1:
        raise MalformedModel(f"{path}: {len(names)} arrays, a file of scores has one")
    return state[names[0]], names[0]
