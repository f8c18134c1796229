"""The output carrier as a tracer or a judge reads it: class scores of probes, and nothing else of a model.

What the scores mean is `readouts.scores`. A model at hand is let speak by its network; of one that can only
be asked, its answers are enough, and no network is needed.

A release keeps probes and a support: labelled images that turn features into scores.
"""

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.primitives.loading import loaded
from zktrace.readouts.directions import Floats
from zktrace.readouts.network import Network
from zktrace.readouts.reader import NetworkReader, Survey, check_inputs, numbered, spoken
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import check_scores, headed, score_readout

SUPPORT: Final = 10  # images a class that turn features into scores
FIELDS: Final = frozenset({"labels", "probes", "support"})
_EMBEDS: Final = "zktrace.learning.answers:embeds"
_FEATURES: Final = "zktrace.learning.answers:probe_features"


class OutputReader(NetworkReader):
    """Reads values from a matrix of scores, one row a probe; the terms' dimension is its classes."""

    readout_tolerance: ClassVar[float] = 1e-3  # whitening moves scores more: 3e-5 was measured
    aligned_tolerance: ClassVar[float] = 1e-3

    @classmethod
    def survey(
        cls,
        name: str,
        shared: Arrays,
        *,
        length: int,
        pool: Pool | None,
        draws: Stream,
        network: Network | None = None,
    ) -> Survey:
        """Which of the pool's images are probes, and which are the support."""
        found = draw_queries(pool, length, draws)
        return Survey(dimension=int(found["labels"].max()) + 1, length=length, probes=found)

    @property
    def projections(self) -> int:
        """A score for each probe and class."""
        return self.terms.length * self.terms.dimension

    def project(self, arrays: Arrays) -> Floats:
        """The scores of one model, row after row. Of the shared model, they are the reference."""
        self._check_probes()
        return self.answered(spoken(self.terms.carrier, arrays, self.probes, self.terms.network))

    def disguised(self, suspect: Arrays, how: str) -> bool:
        """A classifier is taken at its word: only an embedding is given a head."""
        self._check_probes()
        embeds: bool = loaded(_EMBEDS)(suspect, self.probes, self.terms.network)
        return embeds

    def aligned(self, suspect: Arrays, how: str, *, shared: Arrays, pool: Pool | None) -> Floats:
        """The scores of an embedding by the head that comes closest to the shared model's answers."""
        self._check_probes()
        wanted = self.project(shared) if self.reference is None else self.reference
        features: Floats = loaded(_FEATURES)(suspect, self.probes, self.terms.network)
        return headed(features, wanted.reshape(self.terms.length, -1)).reshape(-1)

    def answered(self, scores: NDArray[Any]) -> Floats:
        """The same of a suspect that was only asked."""
        wanted = (self.terms.length, self.terms.dimension)
        if scores.shape != wanted:
            raise InputError(
                f"scores of shape {scores.shape}, the release has {wanted[0]} probes and {wanted[1]} classes"
            )
        return check_scores(scores).reshape(-1)

    def readout(self, projected: Floats, reference: Floats | None) -> Floats:
        """What scores have beyond the shared model's."""
        if reference is None:
            raise InputError("the output carrier is read against the shared model's own scores")
        shape = (self.terms.length, self.terms.dimension)
        if projected.size != self.projections or reference.size != self.projections:
            raise InputError(f"{projected.size} scores, {shape[0]} probes x {shape[1]} classes are read")
        return score_readout(self.terms.seed, projected.reshape(shape), reference.reshape(shape))

    def scale(self, projected: Floats, readout: Floats, reference: Floats | None) -> float:
        """The readout itself: scores have a size of their own."""
        return float(np.abs(readout).max())

    def _check_probes(self) -> None:
        """Probes and support that fit what is on record."""
        if set(self.probes) != FIELDS:
            raise InputError("the probes given have no labels of a support: they are no queries")
        numbered(self.probes, "probes", self.terms.length)
        check_inputs(self.probes["support"], "support")
        classes = len(np.unique(self.probes["labels"]))
        if classes != self.terms.dimension:
            raise InputError(
                f"a support of {classes} classes, the release has {self.terms.dimension} on record"
            )


def draw_queries(pool: Pool | None, length: int, draws: Stream) -> dict[str, NDArray[Any]]:
    """Support and probes of the output carrier, a secret draw: no image is both.

    Probes are of all classes alike, as far as there are images: where one class is most of the data, its
    images look alike to the model and could carry little.
    """
    if pool is None:
        raise InputError(f"{length} probes are needed, and there is no proxy data")
    classes, labels = np.unique(pool.labels, return_inverse=True)
    held = [
        _shuffled(np.flatnonzero(labels == each), draws)[: min(SUPPORT, int((labels == each).sum()) // 2)]
        for each in range(len(classes))
    ]
    if len(classes) < 2 or not all(len(each) for each in held):
        raise InputError(
            "the output carrier needs proxy data of two classes or more, with two images of each"
        )
    support = np.concatenate(held)
    rest = np.setdiff1d(np.arange(len(labels)), support)
    if len(rest) < length:
        raise InputError(
            f"{length} probes and {len(support)} images of a support are needed, "
            f"the proxy data has {len(labels)} images"
        )
    chosen = _evenly(rest, labels[rest], length, draws)
    return {
        "labels": labels[support].astype(np.int64),  # 0, 1, ..., the order of a probe's scores
        "probes": np.ascontiguousarray(pool.images[chosen], dtype=np.float32),
        "support": np.ascontiguousarray(pool.images[support], dtype=np.float32),
    }


def _evenly(
    places: NDArray[np.int64], labels: NDArray[np.int64], count: int, draws: Stream
) -> NDArray[np.int64]:
    """Some of the places, as many of each label as of any other while there are, in random order."""
    order = draws.permutation(len(places))
    turn = np.zeros(len(places), dtype=np.int64)  # the how-manieth of its label a place is, in that order
    for each in np.unique(labels):
        own = order[labels[order] == each]
        turn[own] = np.arange(len(own))
    first = order[np.argsort(turn[order], kind="stable")][:count]
    return _shuffled(places[first], draws)


def _shuffled(values: NDArray[np.int64], draws: Stream) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = values[draws.permutation(len(values))]
    return chosen
