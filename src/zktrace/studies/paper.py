"""All that the paper measured, as one plan: experiments with their batches, the cheap ones first.

A plan goes seed by seed through every experiment, so that a run that is stopped has something of everything.
Experiments of one seed share its federation: what one of them trains, the others find. How many of the seeds
an experiment takes stands in `SEEDS_OF`; what trains most takes fewer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from zktrace.attacks.grid import FAMILIES, Attack, grid
from zktrace.attacks.insider import ADAPTIVE
from zktrace.carriers import NAMES as CARRIERS
from zktrace.errors import InputError
from zktrace.learning.presets import Preset
from zktrace.marking.settings import CopySettings
from zktrace.studies import disguise, federation, insiders, steering, variants
from zktrace.studies.attack_targets import IDENTITY, targets
from zktrace.studies.attacks import SAMPLES, AttackBatch
from zktrace.studies.federated_tracing import OTHERS, tracings
from zktrace.studies.federation import FederationTrial
from zktrace.studies.ground import Ground, grounds
from zktrace.studies.rows import Rows
from zktrace.studies.runner import Batch, Estimate, estimate
from zktrace.studies.suspects import Students
from zktrace.studies.variants import stressed

SEEDS: Final = (42, 137, 271, 314, 1729, 2718, 3141, 5772, 6561, 9999)  # the paper's
SEEDS_OF: Final[Mapping[str, int]] = {  # the first so many; the paper has ten of all
    "steering": 1,
    "federation": 10,
    "attacked-models": 10,
    "attacks": 2,
    "tracing": 3,
    "shifted": 1,
    "strategies": 1,
    "crowd": 1,
    "stressors": 1,
    "attacked-copies": 3,
    "insiders": 3,
    "disguise": 3,
    "distillation": 1,
}
DISTILLERS: Final = ("none", "features", "deeper", "logits", "isometry")
ERASERS: Final = ("negation", "fresh", "hybrid")
CROWD: Final = (("weight",), ("spread",))  # what copies of a crowd's model carry
EACH: Final = tuple((name,) for name in CARRIERS)  # copies with one carrier


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperGrid:
    """For how long attackers and copies are trained, on how much, and how many words are steered."""

    points: str = "paper"  # of `attacks.grid`
    coalitions: int = steering.TRIALS
    copies: int = 300  # episodes of a copy in the profile paper, and of an insider: the paper's
    tuned: int = 100  # episodes of who trains on
    distilled: tuple[int, ...] = (5, 20, 80)  # epochs of students; the last as in `tab:attacks`
    taught: int = 8  # epochs of the students of `tab:kdclass`
    images: int = SAMPLES  # of an attacker who trains
    variants: tuple[str, ...] = ()  # of federations under stress; none: all
    crowd: str = "stations-40"  # the federation in which more stations are told apart than hold copies
    holders: int = 10  # of its stations
    pairs: int = 20  # of them that are drawn
    shifted: str = "shift"  # the federation of receivers that are not alike
    least: int = 0  # samples that simulated data have, whatever the preset says

    def preset(self, given: Preset) -> Preset:
        """With so much data; an epoch of pre-training stays as long as it was."""
        if given.data.samples >= self.least:
            return given
        drawn = given.pretraining.samples or given.data.samples
        return replace(
            given,
            data=replace(given.data, samples=self.least),
            pretraining=replace(given.pretraining, samples=drawn),
        )


GRIDS: Final = {
    "paper": PaperGrid(),
    "short": PaperGrid(  # goes through everything and measures nothing
        points="short",
        coalitions=5,
        copies=3,
        tuned=2,
        distilled=(1,),
        taught=1,
        images=2_400,  # an insider that guesses draws 2,048 probes among them
        variants=("median", "stations-5"),
        crowd="stations-5",
        holders=2,
        pairs=1,
        least=22_000,  # a tenth of them is the server's: enough for the probes of a carrier
    ),
}


@dataclass(frozen=True, kw_only=True)
class PaperSetting:
    """What a plan is for."""

    preset: Preset
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None
    grid: PaperGrid = GRIDS["paper"]

    def __post_init__(self) -> None:
        if not self.seeds or not self.datasets:
            raise InputError("a plan needs a seed and a set of data")

    @property
    def trained(self) -> Preset:
        """What federations are trained with."""
        return self.grid.preset(self.preset)

    def federations(self, seed: int) -> list[FederationTrial]:
        """With marks, one for each set of data."""
        found = federation.trials(self.trained, list(self.datasets), [seed])
        return [each for each in found if each.preset.marks.lambda_wm]

    def crowds(self, seed: int) -> list[FederationTrial]:
        """The same with more stations."""
        return [
            run for each in self.datasets for run in stressed(self.trained, [self.grid.crowd], each, seed)
        ]

    def grounds(
        self, federations: Sequence[FederationTrial], profiles: Sequence[str] = ("paper", "informed")
    ) -> list[Ground]:
        """Federations as operators have them."""
        return grounds(
            federations,
            profiles,
            CopySettings(episodes=self.grid.copies),
            work=self.work,
            cifar10=self.cifar10,
            cache=self.cache,
        )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Batches by seed."""

    name: str
    parts: Mapping[int, tuple[Batch, ...]]
    trains: frozenset[str] = frozenset()  # keys of prerequisites that its own trials leave behind

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All of them."""
        return tuple(batch for part in self.parts.values() for batch in part)


def experiments(setting: PaperSetting, only: Sequence[str] = ()) -> tuple[Experiment, ...]:
    """The plan, or some of its experiments, cheap ones first."""
    if unknown := [each for each in only if each not in _MADE]:
        raise InputError(f"no experiment {unknown[0]!r}; known: {', '.join(_MADE)}")
    return tuple(_experiment(setting, name) for name in _MADE if not only or name in only)


def _experiment(setting: PaperSetting, name: str) -> Experiment:
    chosen = setting.seeds[: SEEDS_OF[name]]
    own = [run.folder for seed in chosen for run in setting.federations(seed)] if name == "federation" else []
    return Experiment(
        name=name,
        parts={seed: tuple(_MADE[name](setting, seed)) for seed in chosen},
        trains=frozenset(own),
    )


def stages(plan: Sequence[Experiment]) -> Iterator[tuple[Experiment, tuple[Batch, ...]]]:
    """In the order in which they are run: seed by seed, in each of them experiment by experiment."""
    seeds = dict.fromkeys(seed for each in plan for seed in each.parts)
    return ((each, each.parts[seed]) for seed in seeds for each in plan if seed in each.parts)


def estimates(plan: Sequence[Experiment], rows: Rows) -> dict[str, Estimate]:
    """What is left of each; a federation that several experiments need counts for the first of them."""
    seen, found = set[str](), dict[str, Estimate]()
    for each in plan:
        left = estimate(each.batches, rows)
        missing = {need.key: need.guess for batch in each.batches for need in batch.needs if not need.ready()}
        twice = sum(guess for key, guess in missing.items() if key in seen)
        found[each.name] = Estimate(trials=left.trials, seconds=left.seconds - twice)
        seen |= missing.keys() | each.trains
    return found


def _federation(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    return federation.batches(
        setting.trained,
        list(setting.datasets),
        [seed],
        work=setting.work,
        cifar10=setting.cifar10,
        cache=setting.cache,
    )


def _steering(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    return steering.batches(steering.steering_trials(count=setting.grid.coalitions, seed=seed))


def _attacked_models(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """The points of `tab:attacks` on shared models, without students."""
    return _attacked(setting, seed, (IDENTITY,), _quick(setting, "table"))


def _attacks(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """The paper's whole grids on shared models, without students."""
    return _attacked(setting, seed, (IDENTITY,), _quick(setting, setting.grid.points))


def _attacked_copies(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """A point of each family on a copy."""
    return _attacked(setting, seed, ("paper", "informed"), _quick(setting, "short"))


def _quick(setting: PaperSetting, points: str) -> list[Attack]:
    """Of a grid whatever teaches no student."""
    families = [each for each in FAMILIES if each != "distill"]
    whole = points == "paper"  # it has all lengths of training on
    return grid(points, families, lengths={} if whole else {"finetune": [setting.grid.tuned]})


def _distillation(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """Students of features, on shared models and copies."""
    points = grid("paper", ["distill"], lengths={"distill": setting.grid.distilled})
    return _attacked(setting, seed, (IDENTITY, "paper", "informed"), points)


def _attacked(
    setting: PaperSetting, seed: int, aims: Sequence[str], points: Sequence[Attack]
) -> list[AttackBatch]:
    found = targets(
        setting.federations(seed),
        aims,
        CopySettings(episodes=setting.grid.copies),
        work=setting.work,
        cifar10=setting.cifar10,
        cache=setting.cache,
    )
    return [AttackBatch(target=each, attacks=tuple(points), samples=setting.grid.images) for each in found]


def _insiders(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """Own rows erased with once, twice and four times the effort of a copy; and who knows less, or looks."""
    unit = setting.grid.copies
    places = setting.grounds(setting.federations(seed))
    made = partial(insiders.trials, places, count=1, samples=min(setting.grid.images, insiders.SAMPLES))
    paper = partial(made, knows=["directions"])
    once, more = paper(kinds=ERASERS, episodes=[unit]), paper(kinds=["hybrid"], episodes=[2 * unit, 4 * unit])
    ours = made(kinds=[ADAPTIVE], episodes=[unit]), made(kinds=insiders.ALONE, episodes=[unit])
    return insiders.batches([*once, *more, *ours[0], *ours[1]])


def _disguise(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    places = setting.grounds(setting.federations(seed))
    students = Students(epochs=setting.grid.taught, samples=setting.grid.images)
    return disguise.batches(places, students=students, attackers=DISTILLERS)


def _tracing(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """Each carrier of a profile by itself, and copies with all there are."""
    return tracings(setting.grounds(setting.federations(seed)), [*EACH, tuple(CARRIERS)])


def _strategies(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """The same copies, put together in every way that colluders know."""
    return tracings(setting.grounds(setting.federations(seed), ["informed"]), EACH, strategies=OTHERS)


def _shifted(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """Copies of a federation whose receivers are not alike, leaked alone and in pairs; of simulated GNSS."""
    runs = [
        run
        for data in setting.datasets
        for run in stressed(setting.trained, [setting.grid.shifted], data, seed)
    ]
    return tracings(setting.grounds(runs), EACH, sizes=(), pairs=setting.grid.pairs) if runs else []


def _crowd(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    """More stations than hold copies: all of them are scored."""
    places, grid = setting.grounds(setting.crowds(seed)), setting.grid
    return tracings(places, CROWD, pairs=grid.pairs, copies=grid.holders)


def _stressors(setting: PaperSetting, seed: int) -> Sequence[Batch]:
    return variants.batches(
        setting.trained,
        setting.grid.variants,
        list(setting.datasets),
        [seed],
        work=setting.work,
        cifar10=setting.cifar10,
        cache=setting.cache,
    )


_MADE: Final[Mapping[str, Callable[[PaperSetting, int], Sequence[Batch]]]] = {
    "steering": _steering,
    "federation": _federation,
    "attacked-models": _attacked_models,
    "attacks": _attacks,
    "tracing": _tracing,
    "shifted": _shifted,
    "strategies": _strategies,
    "crowd": _crowd,
    "stressors": _stressors,
    "attacked-copies": _attacked_copies,
    "insiders": _insiders,
    "disguise": _disguise,
    "distillation": _distillation,
}
NAMES: Final = tuple(_MADE)
