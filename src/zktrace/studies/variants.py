"""Named variants of a preset: the same federation under stress (`tab:survival`, `tab:noniid`, stressors).

    median             coordinate-wise median instead of the average
    shift              receiver shift: +3 dB of gain, noise at 5 to 20 dB, another for each station
    alpha-A            concentration A of the Dirichlet partition over labels
    participation-Q    the share Q of the stations in each round
    stations-N         N stations

Stations must be able to form episodes, or the table of loads would show who cannot train. So simulated GNSS
has as many samples more as there are stations more. Beyond 40 stations episodes have 5 questions a class at
most, which halves what a station needs: the 20,000 training images of CIFAR-10 that there are do not grow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from zktrace.errors import InputError
from zktrace.learning.presets import Preset
from zktrace.studies.federation import FederationBatch, FederationTrial, trials

CROWD: Final = 40  # stations beyond which episodes are smaller
QUESTIONS: Final = 5  # a class, at most, in episodes of a crowd
ALPHAS: Final = (0.1, 0.2, 0.25, 0.5)
PARTICIPATIONS: Final = (0.5, 0.3)
STATIONS: Final = (5, 20, 40, 80, 120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One change of a preset."""

    name: str
    change: Callable[[Preset], Preset]
    simulated: bool = False  # of simulated GNSS alone

    def fits(self, dataset: str) -> bool:
        """Whether there is such a variant of a preset with this dataset."""
        return dataset == "gnss" or not self.simulated


def _median(preset: Preset) -> Preset:
    return replace(preset, federation=replace(preset.federation, aggregation="median"))


def _shift(preset: Preset) -> Preset:
    return replace(preset, data=replace(preset.data, receiver_shift=True))


def _skewed(alpha: float, preset: Preset) -> Preset:
    return replace(preset, federation=replace(preset.federation, alpha=alpha))


def _partly(share: float, preset: Preset) -> Preset:
    return replace(preset, federation=replace(preset.federation, participation=share))


def _with_stations(count: int, preset: Preset) -> Preset:
    """More stations want more samples, as far as there are any; a crowd wants smaller episodes."""
    before, episodes, data = preset.federation.clients, preset.episodes, preset.data
    if count > CROWD:
        episodes = replace(episodes, query=min(QUESTIONS, episodes.query))
    if data.dataset == "gnss" and count > before:
        wanted = data.samples * count * episodes.shape.needed
        data = replace(data, samples=-(-wanted // (before * preset.episodes.shape.needed)))
    federation = replace(preset.federation, clients=count)
    return replace(preset, data=data, episodes=episodes, federation=federation)


VARIANTS: Final = {
    each.name: each
    for each in (
        Variant(name="median", change=_median),
        Variant(name="shift", change=_shift, simulated=True),
        *(Variant(name=f"alpha-{each}", change=partial(_skewed, each)) for each in ALPHAS),
        *(Variant(name=f"participation-{each}", change=partial(_partly, each)) for each in PARTICIPATIONS),
        *(Variant(name=f"stations-{each}", change=partial(_with_stations, each)) for each in STATIONS),
    )
}


def stressed(preset: Preset, names: Sequence[str], dataset: str, seed: int) -> list[FederationTrial]:
    """The federation of a dataset and seed in these variants, as far as the dataset has them."""
    chosen = replace(preset, data=replace(preset.data, dataset=dataset))
    wanted = [each for each in map(_variant, dict.fromkeys(names)) if each.fits(dataset)]
    return [FederationTrial(preset=each.change(chosen), seed=seed, variant=each.name) for each in wanted]


def batches(
    preset: Preset,
    names: Sequence[str],
    datasets: list[str],
    seeds: list[int],
    *,
    work: Path,
    cifar10: Path | None = None,
    cache: Path | None = None,
) -> list[FederationBatch]:
    """One for every dataset and seed, with the named variants that it has, or all; all write marks."""
    for each in map(_variant, names):
        if not any(map(each.fits, datasets)):
            raise InputError(f"variant {each.name} is of simulated GNSS: it needs --dataset gnss")
    return [
        FederationBatch(
            runs=tuple(runs),
            beside=tuple(trials(preset, [dataset], [seed])),
            work=work,
            cifar10=cifar10,
            cache=cache,
        )
        for seed in seeds
        for dataset in datasets
        if (runs := stressed(preset, names or list(VARIANTS), dataset, seed))
    ]


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise InputError(f"no variant {name!r}; known: {', '.join(VARIANTS)}")
    return VARIANTS[name]
