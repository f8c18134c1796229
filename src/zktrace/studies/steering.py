"""Coalitions that steer the decoded word by their own rows: code space alone, nothing is trained.

The word starts as what a decoder reads of averaged copies: the coalition's majority, coins where it is split,
and some flips. At a share of the positions, `strength`, it is then edited:

    majority    towards the coalition's majority, as in the paper's adaptive steering
    lowering    where the members differ, to the symbol that keeps the greatest of their own scores least;
                biases are guessed from their rows (under a fair law they are known)
    oracle      the same with the true biases, which no coalition has: a bound on what steering can do

The members know their own rows and nobody else's. The marking assumption holds for the last two: they choose
only where they differ. A code is drawn anew for every trial. The law `tardos` is decided by the paper's rule,
`fair` by the certified one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.certificates.adjudicate import Rule
from zktrace.codes import Code, unpack
from zktrace.codes.laws import Law
from zktrace.codes.strategies import flip, guessed_biases, lowering, majority
from zktrace.derivation.key import CodeKey
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits
from zktrace.readouts.readout import Readout
from zktrace.studies.runner import Prerequisite, Progress, Trial, quietly
from zktrace.studies.tracing import BUDGET, sigmas
from zktrace.tracing.score import score

ORACLE: Final = "oracle"
STEERINGS: Final = ("majority", "lowering", ORACLE)
RULES: Final[dict[Law, Rule]] = {"tardos": "paper", "fair": "certified"}
SIZES: Final = (2, 3, 5)
STRENGTHS: Final = (0.0, 0.5, 1.0)
TRIALS: Final = 400
FLIPS: Final = 0.2  # of the channel: a pair's own flip rate is then 0.28, as the paper's
STATIONS: Final = 10
CARRIER: Final = "weight"  # whose code it is
LENGTH: Final = 512
COLLUDERS: Final = 2
_SECONDS: Final[dict[Law, float]] = {"tardos": 0.02, "fair": 0.11}  # a coalition, on one idle core


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringTrial:
    """Coalitions of one size, and how they steer."""

    steering: str
    law: Law
    size: int
    strength: float = 1.0
    trials: int = TRIALS
    flips: float = FLIPS
    length: int = LENGTH
    stations: int = STATIONS
    seed: int = 42

    def __post_init__(self) -> None:
        if self.steering not in STEERINGS:
            raise InputError(f"no steering {self.steering!r}; known: {', '.join(STEERINGS)}")
        if self.law not in RULES:
            raise InputError(f"steering is studied under the laws {' and '.join(RULES)}, not {self.law!r}")
        if not 2 <= self.size < self.stations or self.trials < 1:
            raise InputError(f"a coalition of {self.stations} stations has 2..{self.stations - 1} members")
        if not 0.0 <= self.strength <= 1.0:
            raise InputError(f"a strength of {self.strength}: must lie in [0, 1]")

    def facts(self) -> dict[str, Any]:
        """What the row says of it."""
        return {
            "study": "steering",
            "steering": self.steering,
            "law": self.law,
            "rule": RULES[self.law],
            "size": self.size,
            "strength": self.strength,
            "trials": self.trials,
            "flips": self.flips,
            "length": self.length,
            "stations": self.stations,
            "seed": self.seed,
            "budget": str(BUDGET),
        }


def steering_trials(
    *,
    steerings: Sequence[str] = STEERINGS,
    laws: Sequence[str] = tuple(RULES),
    sizes: Sequence[int] = SIZES,
    strengths: Sequence[float] = STRENGTHS,
    count: int = TRIALS,
    flips: float = FLIPS,
    seed: int = 42,
) -> Iterator[SteeringTrial]:
    """Every way to steer, under every law, in every size.

    Without strength all ways are one: the first. Under a fair law the oracle tells nothing new.
    """
    if unknown := set(laws) - set(RULES):
        raise InputError(f"no law {sorted(unknown)[0]!r} here; known: {', '.join(RULES)}")
    for law in (each for each in RULES if each in laws):
        for size in sizes:
            for place, steering in enumerate(each for each in steerings if law != "fair" or each != ORACLE):
                for strength in (each for each in strengths if each or not place):
                    yield SteeringTrial(
                        steering=steering,
                        law=law,
                        size=size,
                        strength=strength,
                        trials=count,
                        flips=flips,
                        seed=seed,
                    )


@dataclass(frozen=True, kw_only=True)
class SteeringBatch:
    """Coalitions of one size under one law."""

    coalitions: tuple[SteeringTrial, ...]
    study: ClassVar[str] = "steering"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()

    @property
    def name(self) -> str:
        """For people."""
        first = self.coalitions[0]
        return f"{first.size} under the law {first.law}"

    @property
    def size(self) -> int:
        """A row each."""
        return len(self.coalitions)

    @property
    def guess(self) -> float:
        """Of one idle core."""
        return sum(each.trials * _SECONDS[each.law] for each in self.coalitions)

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Nothing is trained."""
        for each in self.coalitions:
            yield Trial(facts=each.facts(), outcome=partial(outcome, each, report))


def batches(wanted: Iterable[SteeringTrial]) -> list[SteeringBatch]:
    """One a law and size."""
    groups: dict[tuple[Law, int], list[SteeringTrial]] = {}
    for each in wanted:
        groups.setdefault((each.law, each.size), []).append(each)
    return [SteeringBatch(coalitions=tuple(each)) for each in groups.values()]


def outcome(trial: SteeringTrial, report: Progress = quietly) -> dict[str, Any]:
    """Counts over all coalitions of a trial."""
    rng = np.random.default_rng([trial.seed, trial.size, *f"{trial.law}/{trial.steering}".encode()])
    found = []
    for number in range(1, trial.trials + 1):
        found.append(_once(trial, rng))
        report(f"{trial.law}, {trial.size} by {trial.steering} {trial.strength:g}", number, trial.trials)
    return {
        "traced": sum(each.caught > 0 and not each.framed for each in found),
        "caught": sum(each.caught for each in found),
        "framed": sum(each.framed > 0 for each in found),
        "leads": sum(each.leads > 0 for each in found),
        "own_flips": round(float(np.mean([each.flips for each in found])), 4),
        "greatest": round(float(np.mean([each.greatest for each in found])), 3),
        "other": max(each.other for each in found),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    caught: int
    framed: int
    leads: int  # innocents beyond the candidate threshold without a certificate
    flips: float  # of the word, beside the rows of its members
    greatest: float  # score of a member, in deviations
    other: float  # greatest score of an innocent


def _once(trial: SteeringTrial, rng: np.random.Generator) -> _Outcome:
    """One code, one coalition, one word, one decision."""
    code = Code(
        key=CodeKey.generate(entropy=rng.bytes),
        label=CARRIER,
        length=trial.length,
        colluders=COLLUDERS,
        law=trial.law,
    )
    members = tuple(sorted(map(int, rng.permutation(trial.stations)[: trial.size])))
    held = unpack(code.rows(members), code.length)
    word = steered(trial, held, code.biases.probabilities(), rng)
    readout = Readout(carrier=CARRIER, values=2.0 * word.astype(np.float64) - 1.0, reference=None)
    found = score(
        [readout], [code], recipients=trial.stations, level=BUDGET, rule=RULES[trial.law], certify=True
    )
    named = {each.recipient for stage in found.stages for each in stage}
    (scores,) = sigmas(replace(found, readings=found.readings[:1]), members, trial.stations).values()
    return _Outcome(
        caught=len(named & set(members)),
        framed=len(named - set(members)),
        leads=len({each.recipient for each in found.leads} - set(members)),
        flips=float((held != word).mean()),
        greatest=float(scores["greatest_member"] or 0.0),
        other=float(scores["greatest_other"] or 0.0),
    )


def steered(trial: SteeringTrial, held: Bits, biases: np.ndarray, rng: np.random.Generator) -> Bits:
    """The word that a coalition with these rows leaves to the decoder. Only `oracle` looks at the biases."""
    agreed = majority(held, rng)
    word = flip(agreed, trial.flips, rng)
    chosen = rng.random(len(word)) < trial.strength
    if trial.steering == "majority":
        aimed = agreed
    elif trial.steering == ORACLE or trial.law == "fair":
        aimed = lowering(held, word, biases)
    else:
        aimed = lowering(held, word, guessed_biases(held))
    made: Bits = np.where(chosen, aimed, word).astype(np.uint8)
    return made
