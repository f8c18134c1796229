"""One federation of a study: trained, put on record, two of its copies dispatched as an operator would."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from zktrace.carriers import CARRIERS as ALL
from zktrace.carriers import PROFILES, Profile, carrier
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec
from zktrace.marking.last_stage_writer import mark_config
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease
from zktrace.studies.federation import FederationTrial, trained, training_seconds
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress, quietly
from zktrace.studies.tracing import BUDGET, RELEASE, prepared, station

CARRIERS: Final[dict[Profile, tuple[str, ...]]] = {
    profile: tuple(each.name for each in ALL.values() if profile in each.profiles) for profile in PROFILES
}

_TRIGGERS: Final = ("triggers", "lead")


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

    @cached_property
    def digest(self) -> str:
        """Of the shared model: trained again on another machine, it need not be the same to the bit."""
        return model_digest(open_model(self.model)).hex()

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

    @property
    def key(self) -> str:
        """What is made of it beforehand: the federation, in whatever profile."""
        return self.federation.folder

    @property
    def guess(self) -> float:
        """Seconds of its training."""
        return training_seconds(self.federation.preset)

    def ready(self) -> bool:
        """Whether the shared model is there."""
        return self.model.exists()

    def make(self, report: Progress = quietly) -> None:
        """The shared model, unless it is there."""
        if not self.ready():
            trained(self.spec, self.folder, report)

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
            "model": self.digest,
            "profile": self.profile,
            "settings": self.marking(),
            "budget": str(BUDGET),
        }

    def marking(self) -> dict[str, Any]:
        """All that copies depend on, defaults written out."""
        return marking(self.settings, CARRIERS[self.profile], self.profile)

    @cached_property
    def workspace(self) -> Home:
        """The operator's, with the copies' files in it."""
        name = f"{self.federation.folder}-{self.profile}-{trial_id(self.facts)[:8]}"
        return prepared(
            self.spec, self.model, self.work / name, carriers=CARRIERS[self.profile], profile=self.profile
        )

    @cached_property
    def release(self) -> OpenRelease:
        """The one release, with everybody enrolled."""
        return OpenRelease.of(self.workspace, RELEASE)

    @cached_property
    def copies(self) -> tuple[ModelState, ...]:
        """The owner's copy and the other colluder's."""
        names = [station(row) for row in self.members]
        made = dispatch(
            self.workspace, release=self.release, stations=names, settings=self.settings, read_back=False
        )
        found = {each.station: open_model(each.path) for each in made}
        return tuple(found[name] for name in names)


def marking(settings: CopySettings, carriers: Sequence[str], profile: Profile) -> dict[str, Any]:
    """All that copies on these carriers depend on, defaults written out."""
    found = settings.heeded(carriers, profile)
    if profile == "informed":
        trained = [each for each in carriers if carrier(each).trained]
        found |= {each: _written_out(mark_config(each, settings)) for each in trained}
    return found


def _written_out(config: Any) -> dict[str, Any]:  # noqa: ANN401
    """All settings; those of triggers, which came later, where there are any: no other row is another's."""
    found = asdict(config)
    return found if found.get("triggers") else {k: v for k, v in found.items() if k not in _TRIGGERS}


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
