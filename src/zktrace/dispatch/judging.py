"""Readers for a judge who has the probes of a release and torch: what a network says of them."""

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import CARRIERS
from zktrace.errors import InputError
from zktrace.judge.readers import Project, Wanted, light_readers
from zktrace.marking.feature import FeatureReader
from zktrace.marking.output import OutputModelReader, Support
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays


def network_readers(wanted: Wanted) -> Project | None:
    """A reader of any carrier; None where its probes were not given."""
    if not CARRIERS[wanted.carrier].network or wanted.probes is None:
        return light_readers(wanted)
    if not CARRIERS[wanted.carrier].answers:
        images = _images(wanted.probes, "probes", wanted.length)
        return FeatureReader(
            seed=wanted.seed, probes=images, profile=wanted.profile, dimension=wanted.layout.dimension
        ).project
    return _scores(wanted, wanted.probes)


def _scores(wanted: Wanted, queries: ModelState) -> Project:
    probes, labels = _images(queries, "probes", wanted.length), queries.get("labels")
    support = _images(queries, "support", None)
    if labels is None:
        raise InputError("the probes given have no labels of a support: they are no queries")
    held = Support(images=support, labels=labels)
    if held.classes != wanted.layout.dimension:
        raise InputError(
            f"a support of {held.classes} classes, the release has {wanted.layout.dimension} on record"
        )
    reader = OutputModelReader(seed=wanted.seed, probes=probes, support=held)

    def project(arrays: Arrays) -> Floats:
        return reader.scores(arrays).reshape(-1)

    return project


def _images(state: ModelState, name: str, count: int | None) -> NDArray[np.float32]:
    found = state.get(name)
    if found is None or found.ndim != 4 or len(found) != (len(found) if count is None else count):
        wanted = "images" if count is None else f"{count} images"
        shape = "none" if found is None else f"of shape {found.shape}"
        raise InputError(f"the {name} given are {shape}, {wanted} are needed")
    return found
