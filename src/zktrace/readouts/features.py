"""The feature carrier as a tracer or a judge reads it: m_b = <v_b, f(p_b)> for features of probes.

    paper      m_b of the suspect alone; a bit is the sign (`def:feature-carrier`)
    informed   m_b less the shared model's own

What a network makes of a probe, its feature, is all that is asked of it.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.linear_maps import align_features
from zktrace.readouts.network import Network
from zktrace.readouts.reader import NetworkReader, Survey, anchors, finite, numbered, spoken
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays
from zktrace.readouts.suspects import plain


def feature_directions(seed: bytes, *, length: int, dimension: int) -> Directions:
    """The family v of the feature carrier, one direction a probe."""
    return Directions(label="feature", seed=seed, dimension=dimension, count=length)


class FeatureReader(NetworkReader):
    """Reads one value a probe from a model."""

    _last: tuple[Arrays, tuple[Floats, Floats, Floats]] | None = None  # the suspect that was aligned last

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
        """Which of the pool's images are probes: a secret draw; and how many features a network has."""
        if pool is None or len(pool.images) < length:
            found = 0 if pool is None else len(pool.images)
            raise InputError(f"{length} probes are needed, the proxy data has {found} images")
        chosen = draws.sample(len(pool.images), length)
        images = np.ascontiguousarray(pool.images[chosen], dtype=np.float32)
        one = spoken(name, shared, {"probes": images[:1]}, network)
        return Survey(dimension=one.shape[1], length=length, probes={"probes": images})

    @cached_property
    def images(self) -> NDArray[np.float32]:
        """The probes."""
        return numbered(self.probes, "probes", self.terms.length)

    def features(self, arrays: Arrays, images: NDArray[np.float32]) -> Floats:
        """What a model makes of images: of probes, or of others that it is aligned on.

        A last layer is taken for a classifier, and left out, unless it gives as many features as are wanted.
        """
        network, asked = self.terms.network, {"probes": images}
        given = arrays if network is not None else _embedding(plain(arrays), self.terms.dimension)
        return spoken(self.terms.carrier, given, asked, network)

    def project(self, arrays: Arrays) -> Floats:
        """<v_b, f(p_b)> of one model alone. Of the shared model, they are the reference."""
        return self.project_features(self.features(arrays, self.images))

    def project_features(self, features: Floats) -> Floats:
        """<v_b, feature b> for features of the probes, maybe aligned ones."""
        wanted = (self.terms.length, self.terms.dimension)
        if features.shape != wanted:
            raise InputError(f"features of shape {features.shape}, the release's are of shape {wanted}")
        directions = feature_directions(self.terms.seed, length=len(features), dimension=features.shape[1])
        parts = [
            np.einsum("bd,bd->b", block, features[first : first + len(block)])
            for first, block in directions.blocks()
        ]
        return finite(np.concatenate(parts))

    def read_features(self, features: Floats) -> Floats:
        """The readout of a suspect with these features of the probes."""
        return self.readout(self.project_features(features), self.reference)

    def aligned(self, suspect: Arrays, how: str, *, shared: Arrays, pool: Pool | None) -> Floats:
        """Its features through the map that brings those of other images to the shared model's."""
        if pool is None:
            raise InputError("aligning features takes images of the release's proxy data")
        theirs, ours, own = self._seen(suspect, shared, pool)
        return self.project_features(align_features(theirs, ours, how).apply(own))

    def _seen(self, suspect: Arrays, shared: Arrays, pool: Pool) -> tuple[Floats, Floats, Floats]:
        """Features of other images by both models, and the suspect's of the probes: found once a suspect."""
        if self._last is None or self._last[0] is not suspect:
            others = anchors(pool, self.images)
            found = self.features(suspect, others), self.features(shared, others)
            self._last = suspect, (*found, self.features(suspect, self.images))
        return self._last[1]


def _embedding(arrays: Arrays, dimension: int) -> Arrays:
    """A suspect without its classifier: a last layer counts only if it gives as many features as wanted."""
    head = arrays.get("fc.weight")
    if head is None or (head.ndim == 2 and head.shape[0] == dimension):
        return arrays
    return {name: value for name, value in arrays.items() if not name.startswith("fc.")}
