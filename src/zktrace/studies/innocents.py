"""False accusations on real models: suspects that nobody enrolled was given, under thousands of code keys.

A certificate speaks of chance in the code alone: for any readout, the probability over biases and rows that
somebody innocent is named is at most the budget. So a suspect is read with a few families of directions, the
readouts stay, and code keys are drawn by the thousand, each with its own biases and rows of all who are
enrolled. An operator's directions come from the key too, by a one-way function. Here they are drawn apart,
which a scorer cannot tell, and used for many keys: at full width they take longer to make than a score.

Given the readouts the keys are independent trials, each with a chance of at most the budget. The namings are
therefore no more than a binomial of that chance gives, whatever the readouts are.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np

from zktrace.carriers.feature import FeatureReader
from zktrace.codes import Code, CodeKey
from zktrace.derivation.promises import SEED_BYTES
from zktrace.errors import InputError
from zktrace.evidence.findings import CERTIFIED
from zktrace.learning.training import Images
from zktrace.models import ModelState, model_digest, open_model
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import layer_sizes
from zktrace.readouts.weight import Profile, WeightReader
from zktrace.registry.records import RULE_OF
from zktrace.studies.rows import Row, Rows, trial_id
from zktrace.tracing.readout import Readout
from zktrace.tracing.score import score

KEYS: Final = 2000
FAMILIES: Final = 20  # of directions, each read once: a full-width model takes 0.1 s a family
LEVELS: Final = (Fraction(1, 5), Fraction(1, 1000))
PROFILES: Final[tuple[Profile, ...]] = ("informed", "paper")
CARRIERS: Final = ("weight", "feature")
CONFIDENCE: Final = Fraction(99, 100)  # of the interval around the rate of namings
SURPRISE: Final = Fraction(1, 100_000)  # a count that a true budget gives more rarely refutes it

Progress = Callable[[str, int, int], None]  # what, done, of
Read = Callable[[ModelState, bytes, Profile], Floats]  # a suspect, a seed of directions


@dataclass(frozen=True, slots=True, kw_only=True)
class InnocentsTrial:
    """A shared model, suspects that no key drawn here has marked, and how they are read and scored."""

    dataset: str
    reference: Path
    suspects: Mapping[str, Path]  # by what they are, for people
    probes: Path | None = None  # feature carrier: a model file with the images as its tensor `probes`
    carrier: str = "weight"
    profiles: tuple[Profile, ...] = PROFILES
    levels: tuple[Fraction, ...] = LEVELS
    length: int = 512
    colluders: int = 2
    recipients: int = 10
    keys: int = KEYS
    families: int = FAMILIES
    seed: int = 42

    def __post_init__(self) -> None:
        if self.carrier not in CARRIERS:
            raise InputError(f"carrier {self.carrier!r} is not known; it is one of {', '.join(CARRIERS)}")
        if (self.carrier == "feature") != (self.probes is not None):
            raise InputError("the feature carrier is read with probes, the weight carrier without")
        if min(self.length, self.colluders, self.recipients, self.keys, self.families) < 1:
            raise InputError("length, colluders, recipients, keys and families must be at least 1")
        if not self.suspects or not all(self.suspects):
            raise InputError("a study of innocents needs suspects, each with a word for what it is")
        if not all(0 < level < 1 for level in self.levels):
            raise InputError("a budget must lie between 0 and 1")

    def facts(self) -> dict[str, Any]:
        """What all rows say of it."""
        found = {
            "study": "innocents",
            "dataset": self.dataset,
            "reference": model_digest(open_model(self.reference)).hex(),
            "carrier": self.carrier,
            "length": self.length,
            "colluders": self.colluders,
            "recipients": self.recipients,
            "keys": self.keys,
            "families": self.families,
            "seed": self.seed,
        }
        if self.probes is not None:
            found["probes"] = model_digest(open_model(self.probes)).hex()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """What is random in the trial of one suspect. Key j is tried on the readout of family j mod families."""

    families: tuple[bytes, ...]  # seeds of directions
    keys: tuple[CodeKey, ...]


def draws(trial: InnocentsTrial, kind: str) -> Draws:
    """Fresh ones for each kind of suspect; the first keys are the same however many are drawn."""
    name = f"{trial.dataset}/{trial.carrier}/{kind}"
    seeds, keys = (np.random.default_rng([trial.seed, part, *name.encode()]) for part in (0, 1))
    return Draws(
        families=tuple(seeds.bytes(SEED_BYTES) for _ in range(trial.families)),
        keys=tuple(CodeKey.generate(entropy=keys.bytes) for _ in range(trial.keys)),
    )


def perform(trial: InnocentsTrial, rows: Rows, *, progress: Progress | None = None) -> list[Row]:
    """Make the rows that are missing: one for each suspect, profile and level."""
    report = progress or (lambda _what, _done, _of: None)
    facts, done = trial.facts(), rows.done()
    read = _reader(trial)
    made: list[Row] = []
    for kind, path in trial.suspects.items():
        suspect = open_model(path)
        about = facts | {"suspect": model_digest(suspect).hex(), "kind": kind}
        for profile in trial.profiles:
            wanted = {level: about | {"profile": profile, "level": str(level)} for level in trial.levels}
            missing = {level: each for level, each in wanted.items() if trial_id(each) not in done}
            if not missing:
                continue
            drawn = draws(trial, kind)
            readouts = [read(suspect, seed, profile) for seed in drawn.families]
            for level, each in missing.items():
                found = []
                for named in namings(trial, readouts, drawn.keys, profile, level):
                    found.append(named)
                    report(f"{kind}, {profile}, {level}", len(found), trial.keys)
                made.append(rows.add(each, outcome(found, level)))
    return made


def namings(
    trial: InnocentsTrial,
    readouts: list[Floats],
    keys: tuple[CodeKey, ...],
    profile: Profile,
    level: Fraction,
) -> Iterator[bool]:
    """For each key whether its code, on the readout whose turn it is, names anybody with a certificate."""
    rule = RULE_OF[profile]
    for key, values in zip(keys, cycle(readouts), strict=False):
        readout = Readout(carrier=trial.carrier, values=values, reference=None)
        code = Code(key=key, label=trial.carrier, length=trial.length, colluders=trial.colluders)
        found = score([readout], [code], recipients=trial.recipients, level=level, rule=rule, certify=True)
        yield found.verdict in CERTIFIED


def outcome(found: list[bool], level: Fraction) -> dict[str, Any]:
    """The count, an interval around its rate, and whether the budget could have given so many."""
    count, keys = sum(found), len(found)
    low, high = interval(count, keys)
    most = greatest(keys, level)
    return {"namings": count, "keys": keys, "low": low, "high": high, "most": most, "within": count <= most}


def _reader(trial: InnocentsTrial) -> Read:
    """Reads a suspect with one family of directions."""
    reference = open_model(trial.reference)
    if trial.probes is not None:
        return _feature_reader(reference, _probes(trial.probes, trial.length))

    def read(suspect: ModelState, seed: bytes, profile: Profile) -> Floats:
        layers = layer_sizes(reference)
        reader = WeightReader(seed=seed, length=trial.length, layers=layers, profile=profile)
        if profile == "informed":
            reader = replace(reader, reference=reader.project(reference))
        return reader.read(suspect)

    return read


def _feature_reader(reference: ModelState, probes: Images) -> Read:
    """What a model makes of the probes is computed once; only directions differ."""
    known: dict[bytes, Floats] = {}

    def features(reader: FeatureReader, model: ModelState) -> Floats:
        name = model_digest(model)
        if name not in known:
            known[name] = reader.features(model, probes)
        return known[name]

    def read(suspect: ModelState, seed: bytes, profile: Profile) -> Floats:
        reader = FeatureReader(seed=seed, probes=probes, profile=profile)
        if profile == "informed":
            reader = replace(reader, reference=reader.project_features(features(reader, reference)))
        return reader.read_features(features(reader, suspect))

    return read


def _probes(path: Path, length: int) -> Images:
    """The first images of a file of probes."""
    state = open_model(path)
    if "probes" not in state or len(state["probes"]) < length:
        raise InputError(f"{path}: not a file of {length} probes")
    return np.asarray(state["probes"][:length])


def greatest(trials: int, chance: Fraction) -> int:
    """The least count that a binomial exceeds with a probability of at most SURPRISE: exact, in integers."""
    yes, no = chance.numerator, chance.denominator - chance.numerator
    term, above = no**trials, chance.denominator**trials  # times denominator^trials, all of them
    allowed = SURPRISE * above
    for count in range(trials + 1):
        above -= term  # P[more than count]
        if above <= allowed:
            return count
        term = term * (trials - count) * yes // ((count + 1) * no)
    return trials


def interval(count: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's interval around a rate: each end is missed with half of what is left."""
    half = float(1 - CONFIDENCE) / 2
    low = _rate(lambda p: _at_least(count, trials, p) >= half) if count else 0.0
    high = _rate(lambda p: _at_least(count + 1, trials, p) >= 1 - half) if count < trials else 1.0
    return low, high


def _rate(reached: Callable[[float], bool]) -> float:
    """Where a rising condition becomes true between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _at_least(count: int, trials: int, p: float) -> float:
    """P[binomial >= count] for 0 < p < 1."""
    if not 0.0 < p < 1.0:
        return float(p >= 1.0)
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * math.log(p)
            + (trials - k) * math.log1p(-p)
        )
        for k in range(count, trials + 1)
    )
