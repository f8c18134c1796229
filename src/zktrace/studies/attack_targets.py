"""What the attacks of the grid are aimed at, and what is left in it afterwards.

    identity           the shared model with everybody's codeword: attribution, agreement, presence
    informed, paper    a copy dispatched in that profile: who is named, carrier by carrier

Beside what happened stands `lem:flip`: the bits that no change of this size can flip.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from zktrace.attacks.flips import KnownBits
from zktrace.carriers import PROFILES
from zktrace.certificates.identity import radius_check
from zktrace.certificates.stability import moved_flips
from zktrace.errors import InputError
from zktrace.federation.run import read_marks
from zktrace.federation.spec import preset_facts
from zktrace.learning.arrays import Arrays, Images, Labels, State
from zktrace.learning.checkpoints import load_checkpoint
from zktrace.learning.cost import accuracy
from zktrace.learning.evaluation import EpisodeScore
from zktrace.learning.training import KIND
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, open_model
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import IdentityCodebook, Words
from zktrace.readouts.scales import centred, gather, layer_sizes, scale_names
from zktrace.readouts.weight import WeightReader
from zktrace.studies.changes import as_state
from zktrace.studies.columns import columns
from zktrace.studies.federation import FederationTrial
from zktrace.studies.ground import Ground, grounds
from zktrace.studies.identity import presence
from zktrace.studies.stability import stability
from zktrace.studies.tracing import BUDGET

IDENTITY: Final = "identity"
TARGETS: Final = (IDENTITY, *PROFILES)
EPISODES: Final = 100  # of a measured accuracy, as in the paper


@dataclass(frozen=True, kw_only=True)
class AttackTarget(ABC):
    """A marked model of one federation."""

    ground: Ground

    @property
    @abstractmethod
    def name(self) -> str:
        """One of TARGETS."""

    @property
    @abstractmethod
    def model(self) -> ModelState:
        """Before the attack."""

    @property
    @abstractmethod
    def public(self) -> KnownBits | None:
        """What everybody knows of the mark."""

    @abstractmethod
    def remains(self, suspect: State, *, trained: bool) -> dict[str, Any]:
        """What is read of an attacked model; of one that was trained, what theorems say of students too."""

    def facts(self) -> dict[str, Any]:
        """What all rows of it say."""
        preset = self.ground.federation.preset
        return {
            "study": "attacks",
            "dataset": preset.data.dataset,
            "seed": self.ground.federation.seed,
            "preset": preset_facts(preset),
            "target": self.name,
        }

    def accuracy(self, state: Arrays) -> EpisodeScore:
        """On the same test episodes for all models."""
        images, labels = self._tests
        federation = self.ground.federation
        shape = federation.preset.evaluation.shape
        return accuracy(state, images, labels, shape=shape, episodes=EPISODES, seed=federation.seed)

    @cached_property
    def accuracy_before(self) -> float:
        """Of the model as it was marked."""
        return self.accuracy(self.model).mean

    @cached_property
    def _tests(self) -> tuple[Images, Labels]:
        return self.ground.spec.source.samples("test")


@dataclass(frozen=True, kw_only=True)
class SharedTarget(AttackTarget):
    """The shared model. Directions and codewords are public: an attacker has them."""

    @property
    def name(self) -> str:
        """The identity marks."""
        return IDENTITY

    @cached_property
    def model(self) -> ModelState:
        """What the federation came to."""
        return open_model(self.ground.model)

    @cached_property
    def public(self) -> KnownBits:
        """All bits of all stations."""
        blocks = [self._book.block(each) for each in range(self._book.stations)]
        return KnownBits(
            scales=tuple(scale_names(self.model)),
            directions=np.concatenate(blocks),
            word=self._words.reshape(-1),
        )

    def remains(self, suspect: State, *, trained: bool) -> dict[str, Any]:
        """`tab:attacks` of the attacked model, and what `lem:flip` and `thm:attr` promised of it."""
        marks = read_marks(self.ground.spec, self._initial, suspect)
        if marks is None:
            raise InputError("identity marks are read of a federation of two stations or more")
        before, after = self._book.read(self.model), self._book.read(suspect)
        change = self._book.component(suspect) - self._book.component(self.model)
        flips = Flips.of(before.reshape(-1), after.reshape(-1), change)
        check = radius_check((after > 0).astype(np.uint8), self._words)
        return {
            "marks": asdict(marks),
            "presence": presence(check, self._book.bits),
            "promised": self._promised(flips, (before > 0).astype(np.uint8)),
            "stations": len(self._words),
            "flips": flips.facts(),
        }

    def _promised(self, flips: "Flips", read: Words) -> int:
        """Stations whose attribution is certain for any change of this size."""
        check = radius_check(read, self._words)
        possible = flips.possible.reshape(read.shape).sum(axis=1)
        worst = [distance + more for distance, more in zip(check.distances, possible.tolist(), strict=True)]
        return sum(2 * each < check.min_distance for each in worst)

    @cached_property
    def _book(self) -> IdentityCodebook:
        return self.ground.spec.codebook(layer_sizes(self.model))

    @cached_property
    def _words(self) -> Words:
        return self.ground.spec.codewords()

    @cached_property
    def _initial(self) -> State:
        """As pre-training left it."""
        return load_checkpoint(self.ground.folder / "pretraining.safetensors", kind=KIND).group("model")


@dataclass(frozen=True, kw_only=True)
class CopyTarget(AttackTarget):
    """One station's copy. Directions, probes and rows are secret: an attacker guesses."""

    @property
    def name(self) -> str:
        """The profile of the copy."""
        return self.ground.profile

    @property
    def model(self) -> ModelState:
        """The owner's copy."""
        return self.ground.copies[0]

    @property
    def public(self) -> None:
        """Nothing."""

    def facts(self) -> dict[str, Any]:
        """And how copies are marked, and who names."""
        return super().facts() | {"settings": self.ground.marking(), "budget": str(BUDGET)}

    def remains(self, suspect: State, *, trained: bool) -> dict[str, Any]:
        """Who is named, by carrier; of the weight carrier what `lem:flip` promised."""
        members, found = self.ground.members[:1], as_state(suspect)
        remains: dict[str, Any] = {
            "members": list(members),
            "columns": columns(self.ground, found, members),
            "flips": self._flips(suspect).facts(),
        }
        if trained:
            remains["stability"] = stability(self.ground, found)
        return remains

    def _flips(self, suspect: State) -> "Flips":
        release = self.ground.release
        reader = next(x for x in map(release.reader, release.carriers) if isinstance(x, WeightReader))
        change = gather(suspect) - gather(self.model)
        if self.ground.profile == "informed":
            change = centred(change, reader.terms.layers)
        return Flips.of(reader.read(self.model), reader.read(suspect), change)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flips:
    """Signs before and after a change of the scales, and those that may differ (`lem:flip`)."""

    moved: float  # the length of the change
    possible: np.ndarray[Any, np.dtype[np.bool_]]
    flipped: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def of(cls, before: Floats, after: Floats, change: Floats) -> "Flips":
        """Of what was read along directions of length 1 at most."""
        moved = float(np.linalg.norm(change)) * (1 + 1e-9)  # more than what adding up may round off
        possible = moved_flips(projections=before, moved=moved)
        return cls(moved=moved, possible=possible, flipped=(before > 0) != (after > 0))

    def facts(self) -> dict[str, Any]:
        """Counts of bits; `broken` contradicts the lemma."""
        return {
            "moved": self.moved,
            "bits": len(self.flipped),
            "certain": int((~self.possible).sum()),
            "flipped": int(self.flipped.sum()),
            "broken": int((self.flipped & ~self.possible).sum()),
        }


def targets(
    federations: Sequence[FederationTrial],
    names: Sequence[str],
    settings: CopySettings,
    *,
    work: Path,
    cifar10: Path | None = None,
    cache: Path | None = None,
) -> list[AttackTarget]:
    """Every federation as each of the targets."""
    if unknown := [each for each in names if each not in TARGETS]:
        raise InputError(f"no target {unknown[0]!r}; known: {', '.join(TARGETS)}")
    found: list[AttackTarget] = []
    for name in dict.fromkeys(names):
        profile = "informed" if name == IDENTITY else name
        places = grounds(federations, [profile], settings, work=work, cifar10=cifar10, cache=cache)
        kind = SharedTarget if name == IDENTITY else CopyTarget
        found += [kind(ground=each) for each in places]
    return found
