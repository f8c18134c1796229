"""Asking a model that cannot be had: probes among decoys in a secret order, and their answers picked out.

A probe is asked in all its views. Decoys are images of the release's proxy pool that are no probes, in the
same views, so whoever answers sees images of one kind.
The order is drawn by the operating system and kept in a file of its own, mode 0600.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.canonical import from_json, to_json
from zktrace.readouts.scores import ROWS_LIMIT, check_scores
from zktrace.readouts.views import VIEWS, in_views, mean_view
from zktrace.releases.opened import OpenRelease

FORMAT: Final = "zkt-order-v2"
FILE_LIMIT: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Where the probes stand among the queries."""

    release: str
    total: int  # queries
    places: tuple[int, ...]  # of probe 0, 1, ... in the first view, then of all in the second, ...

    def __post_init__(self) -> None:
        if len(self.places) % len(VIEWS):
            raise MalformedFile(f"an order has every probe in {len(VIEWS)} views")
        if not 1 <= self.total <= ROWS_LIMIT or len(set(self.places)) != len(self.places) or not self.places:
            raise MalformedFile("an order gives each probe a place of its own among the queries")
        if not all(type(each) is int and 0 <= each < self.total for each in self.places):
            raise MalformedFile(f"an order's places are whole numbers below {self.total}")

    def to_bytes(self) -> bytes:
        """The secret file."""
        return to_json(
            {"format": FORMAT, "places": list(self.places), "release": self.release, "total": self.total}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote, or MalformedFile."""
        value = from_json(data, what="an order")
        if not isinstance(value, dict) or set(value) != {"format", "places", "release", "total"}:
            raise MalformedFile("an order must have exactly the fields format, places, release, total")
        if value["format"] != FORMAT or not isinstance(value["release"], str):
            raise MalformedFile(f"an order must have the format {FORMAT} and the name of a release")
        if type(value["total"]) is not int or not isinstance(value["places"], list):
            raise MalformedFile("an order must have a total and a list of places")
        if not all(type(each) is int for each in value["places"]):
            raise MalformedFile("an order's places are whole numbers")
        return cls(release=value["release"], total=value["total"], places=tuple(value["places"]))


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
    order = list(range(len(inputs)))
    drawn.shuffle(order)  # order[i]: which input stands at place i
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    chosen = tuple(int(each) for each in places[: len(views)])
    return inputs[order], Order(release=release.name, total=len(order), places=chosen)


def picked(answers: NDArray[Any], order: Order, *, probabilities: bool = False) -> NDArray[np.float64]:
    """The probes' scores out of all answers, the mean over their views.

    Of probabilities their logarithms are taken, which differ as logits do.
    """
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
