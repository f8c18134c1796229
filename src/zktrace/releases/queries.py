"""Asking a model that cannot be had: probes among decoys in a secret order, and their answers picked out.

A probe is asked in all its views. Decoys are images of the release's proxy pool that are no probes, in the
same views, so whoever answers sees images of one kind.
The order is drawn by the operating system and kept in a file of its own, mode 0600.

Of a model that answers with classes alone, triggers are asked instead, once each, without decoys: they are
images of no pool (`readouts.labels`).
"""

import secrets
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.loading import loaded
from zktrace.readouts.directions import Floats
from zktrace.readouts.labels import check_labels, scores_of_labels, trigger_classes
from zktrace.readouts.scores import ROWS_LIMIT, check_scores
from zktrace.readouts.views import VIEWS, in_views, mean_view
from zktrace.releases.opened import OpenRelease

FORMAT: Final = "zkt-order-v2"
LABELS: Final = "zkt-order-labels-v1"
FILE_LIMIT: Final = 1 << 22
_TRIGGERS: Final = "zktrace.learning.triggers:release_triggers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Where the probes stand among the queries."""

    release: str
    total: int  # queries
    places: tuple[int, ...]  # of probe 0, 1, ... in the first view, then of all in the second, ...
    labels: bool = False  # of trigger 0, 1, ... instead, to be answered with a class each

    def __post_init__(self) -> None:
        if not self.labels and len(self.places) % len(VIEWS):
            raise MalformedFile(f"an order has every probe in {len(VIEWS)} views")
        if not 1 <= self.total <= ROWS_LIMIT or len(set(self.places)) != len(self.places) or not self.places:
            raise MalformedFile("an order gives each probe a place of its own among the queries")
        if not all(type(each) is int and 0 <= each < self.total for each in self.places):
            raise MalformedFile(f"an order's places are whole numbers below {self.total}")

    def to_bytes(self) -> bytes:
        """The secret file."""
        kind = LABELS if self.labels else FORMAT
        return to_json(
            {"format": kind, "places": list(self.places), "release": self.release, "total": self.total}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote, or MalformedFile."""
        value = from_json(data, what="an order")
        if not isinstance(value, dict) or set(value) != {"format", "places", "release", "total"}:
            raise MalformedFile("an order must have exactly the fields format, places, release, total")
        if value["format"] not in {FORMAT, LABELS} or not isinstance(value["release"], str):
            raise MalformedFile(f"an order must have the format {FORMAT} or {LABELS} and a release's name")
        if type(value["total"]) is not int or not isinstance(value["places"], list):
            raise MalformedFile("an order must have a total and a list of places")
        if not all(type(each) is int for each in value["places"]):
            raise MalformedFile("an order's places are whole numbers")
        return cls(
            release=value["release"],
            total=value["total"],
            places=tuple(value["places"]),
            labels=value["format"] == LABELS,
        )


def queries_of(release: OpenRelease, *, decoys: int) -> tuple[NDArray[np.float32], Order]:
    """Inputs to ask a model for, and the secret order of the probes among them."""
    asked = release.terms(release.asked).probes or {}
    probes, images = np.asarray(asked["probes"]), release.pool.images
    rest = np.flatnonzero(release.pool.others(probes)).tolist()
    if not 0 <= decoys <= len(rest):
        raise InputError(f"{decoys} decoys: the release has {len(rest)} images that are no probes")
    drawn = secrets.SystemRandom()
    views = in_views(probes)
    inputs = np.concatenate([views, in_views(images[drawn.sample(rest, decoys)])]).astype(np.float32)
    order, places = _shuffled(len(inputs), drawn)
    return inputs[order], Order(release=release.name, total=len(order), places=places[: len(views)])


def label_queries_of(release: OpenRelease) -> tuple[NDArray[np.float32], Order]:
    """The triggers of a release, made anew from its shared model (torch), and their secret order."""
    asked = release.terms(release.asked).probes or {}
    classes = trigger_classes(reference_scores(release))
    inputs: NDArray[np.float32] = loaded(_TRIGGERS)(release.shared, asked, classes, release.network)
    order, places = _shuffled(len(inputs), secrets.SystemRandom())
    return inputs[order], Order(release=release.name, total=len(order), places=places, labels=True)


def _shuffled(count: int, drawn: secrets.SystemRandom) -> tuple[list[int], tuple[int, ...]]:
    """Which input stands at each place, and at which place each input."""
    order = list(range(count))
    drawn.shuffle(order)
    places = np.empty(count, dtype=np.int64)
    places[order] = np.arange(count)
    return order, tuple(int(each) for each in places)


def reference_scores(release: OpenRelease) -> Floats:
    """The shared model's own scores, (probes, classes)."""
    found = release.folder.reference(release.layout(release.asked))
    if found is None:
        raise InputError(f"the release {release.name} has no scores of its shared model")
    return found.reshape(-1, release.layout(release.asked).dimension)


def picked_labels(answers: NDArray[Any], order: Order, release: OpenRelease) -> Floats:
    """The matrix of scores that stands for the classes a model answered with (`readouts.labels`)."""
    if not order.labels:
        raise InputError("the order is one of probes: they are answered with scores, not with labels")
    reference, layout = reference_scores(release), release.layout(release.asked)
    given = check_labels(answers, reference.shape[1])
    if len(given) != order.total:
        raise InputError(f"{len(given)} answers to {order.total} queries")
    seed = release.custody.direction_seed(layout.carrier, release.record.number, release.record.root)
    return scores_of_labels(seed, given[list(order.places)], reference)


def picked(answers: NDArray[Any], order: Order, *, probabilities: bool = False) -> NDArray[np.float64]:
    """The probes' scores out of all answers, the mean over their views.

    Of probabilities their logarithms are taken, which differ as logits do.
    """
    if order.labels:
        raise InputError("the order is one of triggers: they are answered with labels, not with scores")
    given = check_scores(answers)
    if len(given) != order.total:
        raise InputError(f"{len(given)} answers to {order.total} queries")
    chosen = given[list(order.places)]
    if not probabilities:
        return mean_view(chosen)
    if chosen.min() < 0 or chosen.max() > 1:
        raise InputError("probabilities lie between 0 and 1; without --probabilities any scores are taken")
    least = chosen[chosen > 0].min(initial=1.0)
    logarithms: NDArray[np.float64] = np.log(np.maximum(chosen, least / 2))
    return mean_view(logarithms)
