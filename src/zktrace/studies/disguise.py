"""Disguised copies: what each attacker makes of a copy, and what each carrier reads of it (`tab:kdclass`).

A federation is trained, copies are dispatched as an operator would, and every attacker makes a suspect of one
of them, or of two. The suspect is then traced on each carrier alone and on all of them, alignments included,
with the shares of the budget that a real investigation has. A study puts no investigation on record.

    none                copy as it is
    rescale, permute    function-preserving rewrites of channels; `rewrite`: both, features too
    isometry            a random rotation behind the backbone
    features            a student taught the copy's features; `deeper`: of 34 layers instead of 18
    logits              a classifier taught soft labels only; `headless`: published without its head
    pair-logits         a classifier taught the soft labels of two averaged copies
    labels, foreign     nobody's: a student without a teacher, and a copy that another federation marked

Suspects are files: a study that was stopped goes on with the next of them, and with the epoch it was in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.collusion import average
from zktrace.attacks.distill import DistillConfig, distill
from zktrace.attacks.isometry import isometry
from zktrace.attacks.rewrite import permute, rescale
from zktrace.carriers.feature import FeatureConfig, FeatureReader
from zktrace.carriers.output import OutputConfig
from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.stability import flip_budget, measured_flips, probe_residuals, survival
from zktrace.codes import unpack
from zktrace.dispatch.copies import CopySettings
from zktrace.dispatch.cost import accuracy
from zktrace.dispatch.dispatching import dispatch
from zktrace.dispatch.proxy import evaluation_samples, leakers_samples
from zktrace.dispatch.reading import Reading, read_suspect
from zktrace.dispatch.releases import reader_of, release_folder
from zktrace.errors import InputError
from zktrace.federation.run import Progress as TrainingProgress
from zktrace.federation.run import run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import single_threaded, worker_engine
from zktrace.learning.evaluation import EpisodeScore
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.readouts.weight import PROFILES, Profile
from zktrace.registry.records import RULE_OF, Look, planned
from zktrace.registry.workspace import Workspace
from zktrace.studies.federation import FederationTrial
from zktrace.studies.rows import Row, Rows, trial_id
from zktrace.studies.tracing import BUDGET, RELEASE, prepared, sigmas, station
from zktrace.tracing.looks import decisive, take_looks
from zktrace.tracing.readout import Attempt, Readout
from zktrace.tracing.score import Scored, score

State = Mapping[str, NDArray[Any]]
Progress = Callable[[str, int, int], None]  # what, done, of

CARRIERS: Final[dict[Profile, tuple[str, ...]]] = {
    "informed": ("weight", "feature", "output"),
    "paper": ("weight", "feature"),
}
REWRITES: Final = ("rescale", "permute", "rewrite", "isometry")
STUDENTS: Final[dict[str, DistillConfig]] = {
    "features": DistillConfig(objective="features"),
    "deeper": DistillConfig(objective="features", depth=34),
    "logits": DistillConfig(objective="logits", head=True),
    "headless": DistillConfig(objective="logits"),
    "pair-logits": DistillConfig(objective="logits", head=True),
    "labels": DistillConfig(objective="labels"),
}
ATTACKERS: Final = ("none", *REWRITES, *STUDENTS, "foreign")
COPIES: Final = 2  # dispatched: the owner's, and the other colluder's
SPREAD: Final = 1.0  # of rescaled channels
_STUDENT, _LEAKER, _REWRITE = 11, 12, 13  # purposes of randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class Students:
    """How students learn, and from how many images."""

    epochs: int = 8
    samples: int = 16_000
    inside: bool = False  # the server's samples, probes among them, are some of the leaker's

    def config(self, attacker: str) -> DistillConfig:
        """Of one attacker."""
        return replace(STUDENTS[attacker], epochs=self.epochs)

    def facts(self) -> dict[str, Any]:
        """What rows say of them."""
        return {"epochs": self.epochs, "samples": self.samples, "inside": self.inside}


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One federation of the study: where it was trained and who got copies of it, in one profile."""

    federation: FederationTrial
    profile: Profile
    settings: CopySettings
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None

    @cached_property
    def spec(self) -> RunSpec:
        """The federation as a run."""
        return self.federation.spec(cifar10=self.cifar10, cache=self.cache)

    @property
    def folder(self) -> Path:
        """Of the federation's run."""
        return self.work / self.federation.folder

    @property
    def model(self) -> Path:
        """The shared model."""
        return self.folder / "model.safetensors"

    @property
    def members(self) -> tuple[int, int]:
        """The rows of the owner and of the other colluder: others in every federation."""
        stations = self.federation.preset.federation.clients
        first = self.federation.seed % stations
        return first, (first + 1 + self.federation.seed // stations % (stations - 1)) % stations

    def other(self, places: "Sequence[Ground]") -> "Ground | None":
        """Another federation on the same data in the same profile: the next one, in a circle."""
        data = self.federation.preset.data
        alike = [
            each for each in places if each.profile == self.profile and each.federation.preset.data == data
        ]
        found = alike[(alike.index(self) + 1) % len(alike)]
        return None if found is self else found

    def train(self, progress: TrainingProgress | None = None) -> None:
        """The shared model, unless it is there."""
        if not self.model.exists():
            with worker_engine(self.spec, workers=None) as engine:
                run(self.spec, self.folder, engine, resume=True, progress=progress)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What all rows of it say."""
        preset = self.federation.preset
        return {
            "study": "disguise",
            "dataset": preset.data.dataset,
            "seed": self.federation.seed,
            "width": preset.model.width,
            "stations": preset.federation.clients,
            "model": model_digest(open_model(self.model)).hex(),
            "profile": self.profile,
            "settings": self._settings(),
            "budget": str(BUDGET),
        }

    def _settings(self) -> dict[str, Any]:
        """All that copies depend on, defaults written out."""
        found = self.settings.heeded(CARRIERS[self.profile], self.profile)
        if self.profile == "informed":
            feature = FeatureConfig(**self.settings.feature)  # type: ignore[arg-type]
            output = OutputConfig(**self.settings.output)  # type: ignore[arg-type]
            found |= {"feature": asdict(feature), "output": asdict(output)}
        return found

    @cached_property
    def workspace(self) -> Workspace:
        """The operator's, with the copies' files in it."""
        name = f"{self.federation.folder}-{self.profile}-{trial_id(self.facts)[:8]}"
        return prepared(
            self.spec, self.model, self.work / name, carriers=CARRIERS[self.profile], profile=self.profile
        )

    @cached_property
    def copies(self) -> tuple[ModelState, ...]:
        """The owner's copy and the other colluder's."""
        names = [station(row) for row in self.members]
        made = dispatch(self.workspace, release=RELEASE, stations=names, settings=self.settings, jobs=1)
        found = {each.station: open_model(each.path) for each in made}
        return tuple(found[name] for name in names)


def grounds(
    federations: Sequence[FederationTrial],
    profiles: Sequence[str],
    settings: CopySettings,
    *,
    work: Path,
    cifar10: Path | None,
    cache: Path | None,
) -> list[Ground]:
    """Every federation in every profile."""
    if not set(profiles) <= set(PROFILES):
        raise InputError(f"a profile is one of {', '.join(PROFILES)}")
    return [
        Ground(
            federation=each,
            profile="paper" if profile == "paper" else "informed",
            settings=settings,
            work=work,
            cifar10=cifar10,
            cache=cache,
        )
        for profile in profiles
        for each in federations
    ]


def perform(
    ground: Ground,
    rows: Rows,
    *,
    students: Students,
    attackers: Sequence[str] = ATTACKERS,
    foreign: Ground | None = None,
    progress: Progress | None = None,
) -> Iterator[Row]:
    """Make the suspects and the rows that are missing, one after the other."""
    report = progress or (lambda _what, _done, _of: None)
    unknown = set(attackers) - set(ATTACKERS)
    if unknown:
        raise InputError(f"no attacker {sorted(unknown)[0]!r}; known: {', '.join(ATTACKERS)}")
    ground.train()
    bench = _Bench(ground=ground, students=students, foreign=foreign, report=report)
    done = rows.done()
    for number, attacker in enumerate(attackers, start=1):
        wanted = ground.facts | {"attacker": attacker} | bench.teaching(attacker)
        possible = attacker != "foreign" or foreign is not None
        if possible and trial_id(wanted) not in done:
            yield rows.add(wanted, bench.outcome(attacker))
        report("attackers", number, len(attackers))


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One federation under attack."""

    ground: Ground
    students: Students
    foreign: Ground | None
    report: Progress

    def teaching(self, attacker: str) -> dict[str, Any]:
        """What rows say of how a student was taught."""
        return {"students": self.students.facts()} if attacker in STUDENTS else {}

    def members(self, attacker: str) -> tuple[int, ...]:
        """Whose rows a suspect carries."""
        if attacker in ("labels", "foreign"):
            return ()
        return self.ground.members if attacker.startswith("pair") else self.ground.members[:1]

    def outcome(self, attacker: str) -> dict[str, Any]:
        suspect = self.suspect(attacker)
        members = self.members(attacker)
        reading = _remembered(self._read(suspect))
        columns = {name: self._column(reading, carriers, members) for name, carriers in self._columns()}
        after = self._accuracy(suspect)
        found: dict[str, Any] = {
            "members": list(members),
            "accuracy": after.mean,
            "accuracy_half_width": after.half_width,
            **self._before,
            "columns": columns,
        }
        if attacker in ("features", "deeper"):
            found["stability"] = self._stability(suspect)
        return found

    def _columns(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        carriers = CARRIERS[self.ground.profile]
        yield from ((each, (each,)) for each in carriers)
        yield "all", carriers

    def _read(self, suspect: ModelState) -> Reading:
        with single_threaded():
            return read_suspect(self.ground.workspace, RELEASE, CARRIERS[self.ground.profile], suspect)

    def _column(
        self, reading: Reading, carriers: tuple[str, ...], members: tuple[int, ...]
    ) -> dict[str, Any]:
        """Whom an investigation on some of the carriers names."""
        readouts = tuple(each for each in reading.readouts if each.carrier in carriers)
        further = [each for each in reading.further if each.carrier in carriers]
        if not readouts and not further:
            return {"read": False, "named": [], "caught": 0, "framed": 0}
        looks = planned(
            [each.carrier for each in readouts], [(each.alignment, each.carrier) for each in further]
        )
        stations = self.ground.federation.preset.federation.clients

        def judge(found: tuple[Readout, ...], look: Look) -> Scored:
            return score(
                found,
                [self.ground.workspace.custody.code(each.carrier) for each in found],
                recipients=stations,
                level=BUDGET * look.share,
                rule=RULE_OF[self.ground.profile],
                certify=True,
            )

        taken = take_looks(looks, readouts, further, judge)
        chosen, scored = decisive(taken)
        named = sorted({each.recipient for stage in scored.looks for each in stage})
        return {
            "read": True,
            "verdict": str(scored.verdict),
            "look": chosen.look.alignment,
            "named": named,
            "caught": len(set(named) & set(members)),
            "framed": len(set(named) - set(members)),
            "sigma": {
                f"{each.look.alignment}": sigmas(each.scored, members, stations)
                for each in taken
                if each.scored is not None
            },
        }

    def _accuracy(self, model: ModelState) -> EpisodeScore:
        """On the same test episodes for all models."""
        images, labels = self._tests
        preset = self.ground.federation.preset
        return accuracy(
            model, images, labels, shape=preset.evaluation.shape, seed=self.ground.federation.seed
        )

    @cached_property
    def _tests(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return evaluation_samples(self.ground.spec)

    @cached_property
    def _before(self) -> dict[str, float]:
        """Accuracy of the shared model and of its copies."""
        shared = release_folder(self.ground.workspace, RELEASE).shared()
        return {
            "shared_accuracy": self._accuracy(shared).mean,
            "copy_accuracy": self._accuracy(self.ground.copies[0]).mean,
            "other_accuracy": self._accuracy(self.ground.copies[1]).mean,
        }

    # ── suspects ───────────────────────────────────────────────────────────────────────────────────────────

    def suspect(self, attacker: str) -> ModelState:
        """What an attacker made, from its file if it is there."""
        if attacker == "none":
            return self.ground.copies[0]
        if attacker == "foreign":
            if self.foreign is None:
                raise InputError("a foreign copy needs a second federation")
            self.foreign.train()
            return self.foreign.copies[0]
        folder = self.ground.workspace.root / "suspects"
        folder.mkdir(exist_ok=True)
        taught = trial_id(self.teaching(attacker))[:8] if attacker in STUDENTS else "rewritten"
        path = folder / f"{attacker}-{taught}.safetensors"
        if attacker == "headless":
            kept = self.suspect("logits")
            return ModelState(each for each in kept.tensors() if not each.name.startswith("fc."))
        if not path.exists():
            made = self._student(attacker, path) if attacker in STUDENTS else self._rewritten(attacker)
            save_model(path, made)
        return open_model(path)

    def _rng(self, purpose: int, attacker: str) -> np.random.Generator:
        return self.ground.spec.rng(purpose, ATTACKERS.index(attacker))

    def _rewritten(self, attacker: str) -> dict[str, NDArray[Any]]:
        copy, rng = self.ground.copies[0], self._rng(_REWRITE, attacker)
        if attacker == "isometry":
            return isometry(copy, rng)
        if attacker == "permute":
            return permute(copy, rng)
        features = attacker == "rewrite"
        made = rescale(copy, rng, spread=SPREAD, norms=True, features=features)
        return permute(made, rng, features=True) if attacker == "rewrite" else made

    def _student(self, attacker: str, path: Path) -> dict[str, NDArray[Any]]:
        ground, students = self.ground, self.students
        images, labels = leakers_samples(
            ground.spec,
            samples=students.samples,
            rng=ground.spec.rng(_LEAKER),
            inside=students.inside,
        )
        teachers: list[State] = [ground.copies[0]]
        if attacker.startswith("pair"):
            teachers = [average(ground.copies)]
        with single_threaded():
            return distill(
                teachers,
                images,
                labels,
                students.config(attacker),
                self._rng(_STUDENT, attacker),
                checkpoint=path.with_suffix(".checkpoint"),
                resume=True,
                progress=lambda each: self.report(f"epochs of {attacker}", each.epoch, each.epochs),
            )

    # ── stability ──────────────────────────────────────────────────────────────────────────────────────────

    def _stability(self, suspect: ModelState) -> dict[str, Any]:
        """Whether the sufficient condition of `thm:score-stability` holds, three ways of counting bits.

        `budget`: k of `eq:score-k` at the margin that makes it least. `residuals`: the probes whose feature
        moved by at least their margin. `projected`: those whose own projection did.
        """
        ground = self.ground
        reader = reader_of(ground.workspace, RELEASE, "feature")
        if not isinstance(reader, FeatureReader):
            raise InputError("the release has no feature carrier")
        with single_threaded():
            before, after = (reader.features(each, reader.probes) for each in (ground.copies[0], suspect))
        margins, read = reader.read_features(before), reader.read_features(after)
        residuals, projected = probe_residuals(before, after), np.abs(read - margins)
        code = ground.workspace.custody.code("feature")
        row = unpack(code.rows([ground.members[0]]), code.length)[0]
        threshold = candidate_threshold(
            length=code.length,
            recipients=ground.federation.preset.federation.clients,
            budget=BUDGET,
            tails=2,
        )
        word, biases = (margins > 0).astype(np.uint8), code.biases.probabilities()
        least = min(
            flip_budget(margins=margins, residuals=residuals, mu=float(mu))
            for mu in np.quantile(np.abs(margins), np.linspace(0.01, 0.99, 99))
            if mu > 0
        )
        ways: dict[str, int | NDArray[np.bool_]] = {
            "budget": least,
            "residuals": measured_flips(margins=margins, residuals=residuals),
            "projected": measured_flips(margins=margins, residuals=projected),
        }
        found: dict[str, Any] = {
            "threshold": threshold,
            "margin": float(np.median(np.abs(margins))),
            "residual": float(np.median(residuals)),
            "flipped": int(((read > 0) != (margins > 0)).sum()),
        }
        for name, changed in ways.items():
            one = survival(row=row, word=word, biases=biases, threshold=threshold, changed=changed)
            found |= {"score": one.score, name: {"changed": one.changed, "holds": one.survives}}
        after_word = (read > 0).astype(np.uint8)
        student = survival(row=row, word=after_word, biases=biases, threshold=threshold, changed=0)
        return found | {"student_score": student.score, "student_beyond": student.survives}


def _remembered(reading: Reading) -> Reading:
    """The same with every alignment found once."""
    further = tuple(
        Attempt(carrier=each.carrier, alignment=each.alignment, read=cache(each.read))
        for each in reading.further
    )
    return Reading(readouts=reading.readouts, further=further, left=reading.left)
