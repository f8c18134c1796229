"""What copies cost, by the data of a preset, by inputs of one's own, or by one's own metric."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zktrace.cli.network import function_at
from zktrace.cli.options import run_spec
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.dispatch.dispatching import Copy
    from zktrace.learning.arrays import Images, Labels
    from zktrace.learning.configs import EpisodeShape
    from zktrace.releases import OpenRelease

Measure = Callable[["OpenRelease", "list[Copy]"], "Measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number for the shared model and for each copy, the more the better."""

    what: str  # accuracy or metric
    shared: float
    copies: Mapping[str, float]
    mean: float  # what a copy loses on average, points of an accuracy
    text: str


def measure_option(
    evaluate: str | None, metric: str | None, cifar10: Path | None, seed: int
) -> "Measure | None":
    """How copies are to be measured, if they are; what is named is looked for now."""
    if evaluate is not None and metric is not None:
        raise InputError("copies are measured by --evaluate or by --metric, one of them")
    if metric is not None:
        return _by_metric(metric)
    if evaluate is None:
        return None
    path = Path(evaluate)
    return (
        _by_inputs(path, seed)
        if path.suffix == ".npz" or path.is_dir()
        else _by_preset(evaluate, cifar10, seed)
    )


def _by_metric(place: str) -> Measure:
    function = function_at(place, "--metric")

    def measure(release: "OpenRelease", copies: "list[Copy]") -> Measured:
        from zktrace.learning.cost import metric_cost
        from zktrace.models import open_model

        states = ((copy.station, open_model(copy.path)) for copy in copies)
        cost = metric_cost(release.shared, states, function, network=release.network)
        lost = f"a copy loses {cost.mean:.3g} on average, {cost.worst:.3g} at worst"
        return Measured(
            what="metric",
            shared=cost.shared,
            copies=cost.copies,
            mean=cost.mean,
            text=f"metric {cost.shared:.6g} shared; {lost}",
        )

    return measure


def _by_inputs(path: Path, seed: int) -> Measure:
    from zktrace.front.inputs import pool_of

    samples = pool_of(path)

    def measure(release: "OpenRelease", copies: "list[Copy]") -> Measured:
        from zktrace.learning.cost import EPISODES, shape_for

        shape = shape_for(samples.labels)
        return _accuracy(release, copies, samples.images, samples.labels, shape, EPISODES, seed)

    return measure


def _by_preset(name: str, cifar10: Path | None, seed: int) -> Measure:
    spec = run_spec(name, cifar10, seed)

    def measure(release: "OpenRelease", copies: "list[Copy]") -> Measured:
        from zktrace.learning.cost import EPISODES

        images, labels = spec.source.samples("test")
        shown = spec.preset.evaluation
        return _accuracy(
            release, copies, images, labels, shown.shape, max(shown.episodes, EPISODES), spec.seed
        )

    return measure


def _accuracy(
    release: "OpenRelease",
    copies: "list[Copy]",
    inputs: "Images",
    labels: "Labels",
    shape: "EpisodeShape",
    episodes: int,
    seed: int,
) -> Measured:
    from zktrace.learning.cost import copy_cost
    from zktrace.models import open_model

    cost = copy_cost(
        release.shared,
        ((copy.station, open_model(copy.path)) for copy in copies),
        inputs,
        labels,
        shape=shape,
        episodes=episodes,
        seed=seed,
        network=release.network,
    )
    return Measured(
        what="accuracy",
        shared=cost.shared.mean,
        copies={name: each.mean for name, each in cost.copies.items()},
        mean=cost.mean,
        text=f"accuracy {cost.shared} shared; a copy loses {cost.mean:.2f} points on average, "
        f"{cost.worst:.2f} at worst, on the same episodes",
    )
