"""What is measured of a trained federation beside its result, all of it from the run's folder.

    identity   attribution by who trained, presence, and the margins that stations give their bits (A2)
    spread     how much wider scales and shifts are than before the federation: the embedding channel
    features   how classes lie in feature space, and how many samples of each are named rightly

Nothing here changes a run: a federation that was trained earlier is measured as one that ended just now.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.certificates.identity import RadiusCheck, radius_check
from zktrace.certificates.presence import largest_radius
from zktrace.federation.client import Absence, Client
from zktrace.federation.spec import RunSpec, build_model
from zktrace.learning.arrays import Arrays, Labels
from zktrace.learning.checkpoints import load_checkpoint
from zktrace.learning.evaluation import class_recall, embed, geometry
from zktrace.learning.states import load_state
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import KIND
from zktrace.models import open_model
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import IdentityCodebook
from zktrace.readouts.scales import centred, gather, layer_sizes, scale_names

SAMPLED: Final = 1_000  # test samples whose geometry is measured: it is quadratic in them
KNOWN: Final = 200  # training samples of a class, at most, that its prototype is made from
_CHOOSING, _KNOWING = 40, 41  # purposes of randomness


def measured(spec: RunSpec, folder: Path, *, never_trained: Collection[int]) -> dict[str, Any]:
    """All of it, of a run that has ended."""
    state = dict(open_model(folder / "model.safetensors").items())
    initial = load_checkpoint(folder / "pretraining.safetensors", kind=KIND).group("model")
    with single_threaded():
        return {
            "identity": identity_facts(spec, initial, state, never_trained=never_trained),
            "spread": spread_facts(initial, state),
            "features": feature_facts(spec, state),
        }


# ── identity marks ─────────────────────────────────────────────────────────────────────────────────────────


def identity_facts(
    spec: RunSpec, initial: Arrays, state: Arrays, *, never_trained: Collection[int]
) -> dict[str, Any] | None:
    """What `read_marks` does not say; None for a federation without codewords."""
    if len(spec.words) < 2:
        return None
    book, words = spec.codebook(layer_sizes(state)), spec.codewords()
    check = radius_check(book.extract(state), words)
    trained = sorted(set(range(len(words))) - set(never_trained))
    margins = local_margins(spec, book, state) if spec.marked else None
    return {
        "trained": len(trained),
        "attribution_trained": attributed(check, trained),
        "presence": presence(check, spec.preset.marks.bits),
        "min_distance": check.min_distance,
        "baseline": float(np.linalg.norm(book.component(initial))),
        "margins": None if margins is None else asdict(margins),
    }


def attributed(check: RadiusCheck, stations: Collection[int]) -> float | None:
    """The share of these stations that maximum agreement names uniquely and rightly; None of nobody."""
    if not stations:
        return None
    return sum(check.attributed[each] == each for each in stations) / len(stations)


def presence(check: RadiusCheck, bits: int) -> float:
    """The share of stations that the test of `eq_acceptance` finds.

    It is calibrated as in the paper: an independent codeword of n bits passes with a chance of 2^-n at most.
    """
    radius = largest_radius(bits, Fraction(1, 1 << bits)) or 0
    return sum(each <= radius for each in check.distances) / len(check.distances)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMargins:
    """t_b <gamma_i, E_b> over all bits of all stations that train (A2 asks for `wanted` of every bit)."""

    wanted: float
    stations: int
    least: float
    mean: float
    reached: float  # the share of bits that have what is wanted
    right: float  # the share of bits with the right sign


def local_margins(spec: RunSpec, book: IdentityCodebook, state: Arrays) -> LocalMargins | None:
    """As the last round would go on from the shared model: each station trains once more, on its own."""
    found = []
    for station, word in enumerate(spec.codewords()):
        update = Client(spec, station).fit(dict(state), spec.preset.federation.rounds - 1)
        if not isinstance(update, Absence):
            found.append(signed_margins(book.block(station) @ book.component(update.state), word))
    marks = spec.preset.marks
    return margins_of(found, wanted=marks.push_margin or marks.mu)


def signed_margins(read: Floats, word: NDArray[np.uint8]) -> Floats:
    """t_b times what is read: positive where a bit is right."""
    margins: Floats = (2.0 * word - 1.0) * read
    return margins


def margins_of(found: list[Floats], *, wanted: float) -> LocalMargins | None:
    """Over all stations; None of nobody."""
    if not found:
        return None
    every = np.concatenate(found)
    return LocalMargins(
        wanted=wanted,
        stations=len(found),
        least=float(every.min()),
        mean=float(every.mean()),
        reached=float((every >= wanted).mean()),
        right=float((every > 0).mean()),
    )


# ── the embedding channel ──────────────────────────────────────────────────────────────────────────────────


def spread_facts(before: Arrays, after: Arrays) -> dict[str, float | None]:
    """Deviation after over deviation before, over all BatchNorm layers together; and within layers."""
    layers = layer_sizes(before)
    gamma, beta = (gather(before), gather(after)), (shifts(before), shifts(after))
    return {
        "gamma": widened(*gamma),
        "gamma_in_layers": widened(*(centred(each, layers) for each in gamma)),
        "beta": widened(*beta),
        "beta_in_layers": widened(*(centred(each, layers) for each in beta)),
    }


def shifts(arrays: Arrays) -> Floats:
    """beta: the shifts of all BatchNorm layers, in the order of their scales."""
    names = [f"{name.removesuffix('.weight')}.bias" for name in scale_names(arrays)]
    return np.concatenate([np.asarray(arrays[name], dtype=np.float64) for name in names])


def widened(before: Floats, after: Floats) -> float | None:
    """A ratio of standard deviations; None where there was none before."""
    deviation = float(before.std())
    return float(after.std()) / deviation if deviation else None


# ── features ───────────────────────────────────────────────────────────────────────────────────────────────


def feature_facts(spec: RunSpec, state: Arrays) -> dict[str, Any]:
    """Geometry of test features (`tab:featurespace`); recall of each class in the whole label space.

    `far_proxy` is the paper's: the chance that a sample is taken for another class, each class counted alike.
    """
    dataset, plan = spec.source.load()
    model = build_model(spec, dataset.shape[0])
    load_state(model, state)
    images, labels = dataset.take(plan.split.test)
    features = embed(model, images)
    chosen = np.sort(spec.rng(_CHOOSING).permutation(len(labels))[:SAMPLED])
    known = plan.split.train[some_of_each(dataset.labels[plan.split.train], KNOWN, spec.rng(_KNOWING))]
    known_images, known_labels = dataset.take(known)
    recall = class_recall(embed(model, known_images), known_labels, features, labels)
    return {
        "samples": len(chosen),
        **asdict(geometry(features[chosen], labels[chosen])),
        "recall": {dataset.class_names[each]: share for each, share in recall.by_class.items()},
        "mean_recall": recall.mean,
        "far_proxy": 1 - recall.mean,
    }


def some_of_each(labels: Labels, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions of at most so many samples of each class, drawn without replacement."""
    found = [rng.permutation(np.flatnonzero(labels == each))[:most] for each in np.unique(labels)]
    return np.sort(np.concatenate(found))
