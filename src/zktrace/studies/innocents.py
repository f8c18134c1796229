"""False accusations, counted: whole investigations of real models under thousands of code keys.

A certificate speaks of chance in the code alone: for any readout, the probability over biases and rows that
somebody innocent is named is at most the budget. So models without rows are read by the tool itself, on every
carrier, as they are and through every alignment, under a few releases, each of which has directions of its
own. The readings stay, and code keys are drawn by the thousand. Each makes a registry with everybody
enrolled; colluders put their mark into the readings (`leaks`); and `trace` investigates: plan on record,
looks, stages, findings, verdict, evidence. A false accusation is a case that names a station which is none
of the colluders.

An operator's directions come from the key too, by a one-way function. Here they are drawn apart, which a
scorer cannot tell. Stations have no proofs of possession: they are on record, and no part of the statistics.

Given the readings the keys are independent trials, each with a chance of at most the budget. The namings are
therefore no more than a binomial of that chance gives, whatever the suspects are.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import cycle, product
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.carriers import Profile, law_of
from zktrace.codes import CodeKey
from zktrace.errors import InputError
from zktrace.federation.roster import experimental_roster
from zktrace.guarding import Guard
from zktrace.learning.arrays import Arrays
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState, model_digest, open_model
from zktrace.readouts.readout import Reading
from zktrace.readouts.samples import Pool
from zktrace.registry.custody import IDENTITY_BITS, CodeShape, Custody, default_shape
from zktrace.registry.records import EnrolmentRecord, ReleaseRecord
from zktrace.registry.registry import Registry
from zktrace.registry.stores.memory import MemoryStore
from zktrace.registry.workspace import SETTINGS, Home
from zktrace.releases import OpenRelease, make_release
from zktrace.releases.making import next_name
from zktrace.studies.changes import FORMATS, as_state
from zktrace.studies.ground import CARRIERS
from zktrace.studies.leaks import LEAKS, CoalitionMark
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Prerequisite, Progress, Trial
from zktrace.studies.tally import Tally
from zktrace.studies.tracing import station
from zktrace.tracing import Case, trace

KEYS: Final = 1000
FAMILIES: Final = 4  # of directions: releases that a suspect is read under
LENGTH: Final = 128  # short codes keep the same promise
STATIONS: Final = 10
STRENGTH: Final = 1.0
LEVELS: Final = (Fraction(1, 5),)
GUARD: Final = "spread"
GUARDED: Final[Mapping[str, Callable[[Arrays], ModelState]]] = {"nothing": as_state, **FORMATS}
_INVESTIGATION: Final = 0.1  # seconds


@dataclass(frozen=True, kw_only=True)
class InnocentsTrial:
    """A shared model, models that no key drawn here has marked, and how they are read, leaked and traced."""

    dataset: str
    reference: Path  # the shared model
    suspects: Mapping[str, Path]  # by what they are, for people
    pool: Callable[[], Pool]  # the operator's own images, for probes and anchors
    carriers: tuple[tuple[str, ...], ...] = ()  # those of one investigation each; none: each, and all
    profile: Profile = "informed"
    leaks: tuple[str, ...] = tuple(LEAKS)
    levels: tuple[Fraction, ...] = LEVELS
    length: int = LENGTH
    stations: int = STATIONS
    strength: float = STRENGTH
    keys: int = KEYS
    families: int = FAMILIES
    seed: int = 42
    guarded: str | None = None  # suspects are shared models of a guarded federation, changed in this way

    def __post_init__(self) -> None:
        if min(self.length, self.keys, self.families) < 1:
            raise InputError("length, keys and families must be at least 1")
        if not self.suspects or not all(self.suspects):
            raise InputError("a study of innocents needs suspects, each with a word for what it is")
        if not all(0 < level < 1 for level in self.levels):
            raise InputError("a level must lie between 0 and 1")
        for each in self.leaks:
            if each not in LEAKS:
                raise InputError(f"no leak {each!r}; known: {', '.join(LEAKS)}")
            if LEAKS[each].colluders >= self.stations:
                raise InputError(f"{each}: of {self.stations} stations nobody would be innocent")
        if not 0.0 < self.strength < np.inf:
            raise InputError(f"a strength of {self.strength}: must be a positive number")
        if self.guarded is not None and self.guarded not in GUARDED:
            raise InputError(f"no change {self.guarded!r} of a shared model; known: {', '.join(GUARDED)}")
        able = self.able
        for path in self.carriers:
            if not path or len(set(path)) != len(path) or not set(path) <= set(able):
                raise InputError(f"carriers are of {', '.join(able)}, each once, not {'+'.join(path)}")

    @property
    def able(self) -> tuple[str, ...]:
        """The carriers of the release."""
        return CARRIERS[self.profile] if self.guarded is None else (GUARD,)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The carriers of each investigation."""
        every = (self.able,) if len(self.able) > 1 else ()
        return self.carriers or (*((each,) for each in self.able), *every)

    @property
    def shapes(self) -> tuple[CodeShape, ...]:
        """The codes, as by default."""
        return tuple(default_shape(each) for each in self.able)

    def facts(self) -> dict[str, Any]:
        """What all rows say of it."""
        return {
            "study": "innocents",
            "dataset": self.dataset,
            "reference": model_digest(open_model(self.reference)).hex(),
            "profile": self.profile,
            "codes": {each.carrier: [self.length, each.colluders] for each in self.shapes},
            "stations": self.stations,
            "strength": self.strength,
            "keys": self.keys,
            "families": self.families,
            "seed": self.seed,
            **({} if self.guarded is None else {"guarded": self.guarded}),
        }


@dataclass(frozen=True, kw_only=True)
class InnocentsBatch:
    """One row for each suspect, carriers, leak and level."""

    trial: InnocentsTrial
    work: Path
    study: ClassVar[str] = "innocents"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()

    @property
    def name(self) -> str:
        """By what it is about."""
        return f"{self.trial.dataset}-innocents-{trial_id(self.trial.facts())[:8]}"

    @property
    def size(self) -> int:
        """Some rows may turn out to be about nothing."""
        trial = self.trial
        return len(trial.suspects) * len(trial.paths) * len(trial.leaks) * len(trial.levels)

    @property
    def guess(self) -> float:
        """By the investigations."""
        return self.size * self.trial.keys * _INVESTIGATION

    def trials(self, report: Progress) -> Iterator[Trial]:
        """A suspect is read for the first of its rows."""
        trial, facts, desk = self.trial, self.trial.facts(), Desk(trial=self.trial, work=self.work)
        for (kind, file), carriers in product(trial.suspects.items(), trial.paths):
            suspect = open_model(file)
            about = facts | {"suspect": model_digest(suspect).hex(), "kind": kind, "carriers": list(carriers)}
            for leak, level in product(trial.leaks, trial.levels):
                count = _Count(
                    desk=desk,
                    suspect=suspect,
                    carriers=carriers,
                    leak=leak,
                    level=level,
                    name=f"{kind}, {'+'.join(carriers)}, {leak}, {level}",
                    report=report,
                )
                yield Trial(facts=about | {"leak": leak, "level": str(level)}, outcome=count.outcome)


@dataclass(frozen=True, kw_only=True)
class _Count:
    """The investigations of one row."""

    desk: "Desk"
    suspect: ModelState
    carriers: tuple[str, ...]
    leak: str
    level: Fraction
    name: str
    report: Progress

    def outcome(self) -> dict[str, Any] | None:
        """What came of them; None where nothing would find the leak again."""
        readings = self.desk.readings(self.suspect, self.carriers)
        if LEAKS[self.leak].hidden and not readings[0].further:
            return None
        count = Tally(level=self.level)
        for case, members in cases(
            self.desk, self.suspect, readings, leak=self.leak, level=self.level, name=self.name
        ):
            count.take(case, members)
            self.report(self.name, count.keys, self.desk.trial.keys)
        return count.outcome()


def cases(
    desk: "Desk", suspect: ModelState, readings: Sequence[Reading], *, leak: str, level: Fraction, name: str
) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """An investigation under each key, and the names of the colluders. Key j has the reading j mod families.

    `name` decides what is drawn: the first keys are the same however many there are.
    """
    trial, how, digest = desk.trial, LEAKS[leak], model_digest(suspect)
    rng = np.random.default_rng([trial.seed, *f"{trial.dataset}/{trial.profile}/{name}".encode()])
    for _, (release, reading) in zip(range(trial.keys), cycle(enumerate(readings)), strict=False):
        custody = Custody(key=CodeKey.generate(entropy=rng.bytes), shapes=trial.shapes)
        registry = desk.registry(custody, desk.releases[release], level)
        members = tuple(sorted(map(int, rng.permutation(trial.stations)[: how.colluders])))
        claims = registry.ledger().claims
        codes = {
            each: custody.code(each, claims, length=trial.length, law=law_of(each, trial.profile))
            for each in custody.carriers
        }
        marks = CoalitionMark(leak=how, members=members, codes=codes, strength=trial.strength, rng=rng)
        case = trace(
            registry,
            custody,
            suspect=digest,
            release=desk.releases[release].name,
            readouts=[marks.readout(each) for each in reading.readouts],
            further=[marks.attempt(each) for each in reading.further],
            budget=level,
            requests=lambda _station: None,
        )
        yield case, tuple(station(row) for row in members)


@dataclass(frozen=True, kw_only=True, eq=False)
class Desk:
    """Where suspects are read: an operator's workspace, with the shared model in several releases."""

    trial: InnocentsTrial
    work: Path
    _known: dict[tuple[bytes, tuple[str, ...]], list[Reading]] = field(default_factory=dict)

    @cached_property
    def workspace(self) -> Home:
        """As far as it is missing it is made."""
        trial, facts = self.trial, self.trial.facts()
        told = {each: facts[each] for each in ("dataset", "reference", "profile", "codes")}
        told |= {} if trial.guarded is None else {"frozen": True}
        folder = self.work / f"{trial.dataset}-innocents-{trial_id(told)[:8]}"
        if (folder / SETTINGS).exists():
            workspace = Home.open(folder)
        else:
            workspace = Home.create(folder, title=f"study: {folder.name}", carriers=trial.shapes)
        while len(taken := workspace.registry.ledger().releases) < trial.families:
            make_release(
                workspace,
                trial.reference,
                carriers=trial.able,
                profile=trial.profile,
                name=next_name(taken),
                pool=trial.pool() if trial.guarded is None else None,
                lengths=dict.fromkeys(trial.able, trial.length),
                frozen=trial.guarded is not None,
            )
        return workspace

    @cached_property
    def releases(self) -> tuple[ReleaseRecord, ...]:
        """One for each family of directions."""
        found = self.workspace.registry.ledger().releases.values()
        return tuple(record for _, record in found)[: self.trial.families]

    def readings(self, suspect: ModelState, carriers: tuple[str, ...]) -> list[Reading]:
        """A suspect under every release, each alignment found once. No key that is drawn enters."""
        name = model_digest(suspect), carriers
        if name not in self._known:
            with single_threaded():
                opened = [OpenRelease.of(self.workspace, each.name) for each in self.releases]
                self._known[name] = [
                    each.read(self._as_shared(each, suspect), carriers).remembered() for each in opened
                ]
        return self._known[name]

    def _as_shared(self, release: OpenRelease, suspect: ModelState) -> ModelState:
        """A suspect as it is; a shared model as a guard of this release would have kept it, and changed."""
        if self.trial.guarded is None:
            return suspect
        kept = as_state(Guard(self.workspace, release).incoming(dict(suspect.items())))
        return GUARDED[self.trial.guarded](kept)

    def registry(self, custody: Custody, release: ReleaseRecord, budget: Fraction) -> Registry:
        """A new log under a key: everybody enrolled, and a release that is read as that of the workspace."""
        made = Registry(MemoryStore())
        made.add(custody.setup(title="study", budget=budget, places=self.trial.stations, releases=1))
        for each in self.enrolments:
            made.add(each)
        made.add(lambda ledger: replace(release, number=0, root=ledger.root))
        return made

    @cached_property
    def enrolments(self) -> tuple[EnrolmentRecord, ...]:
        """The stations, the same under all keys: their rows differ by the seeds that a key promises."""
        roster = experimental_roster(self.trial.seed, self.trial.stations)
        return tuple(
            EnrolmentRecord(
                station=station(row),
                row=row,
                public_key=key.to_bytes(),
                codeword=key.codeword(IDENTITY_BITS),
                nonce=hashlib.sha256(f"nonce {row}".encode()).digest(),
                request=hashlib.sha256(f"request {row}".encode()).digest(),
            )
            for row, key in enumerate(roster)
        )
