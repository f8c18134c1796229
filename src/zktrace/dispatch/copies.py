"""What the copies of a release have in common, as a worker process can be handed it."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zktrace.carriers import Profile, carrier, needs_training
from zktrace.errors import InputError
from zktrace.marking.settings import CopySettings
from zktrace.marking.writer import Job, Step, copy_of, writers_of
from zktrace.models import ModelState
from zktrace.readouts.identity import Words
from zktrace.readouts.network import Network
from zktrace.registry.readouts import terms_of
from zktrace.registry.records import Layout
from zktrace.releases import OpenRelease, ReleaseFolder

Maker = Callable[[Mapping[str, Words], int, Step], ModelState]  # words by carrier, row, progress -> a copy


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """From it a worker process makes its maker."""

    folder: Path
    profile: Profile
    layouts: tuple[Layout, ...]
    seeds: dict[str, bytes]  # of the directions, by carrier
    model: bytes  # digest of the shared model
    settings: CopySettings
    network: Network | None = None  # by which copies are trained, if it is none of this package's

    @classmethod
    def of(cls, release: OpenRelease, settings: CopySettings) -> "CopyPlan":
        """For the copies of a release."""
        record, custody = release.record, release.custody
        return cls(
            folder=release.folder.path,
            profile=release.profile,
            layouts=record.layouts,
            seeds={
                each: custody.direction_seed(each, record.number, record.root) for each in release.carriers
            },
            model=record.model,
            settings=settings,
            network=release.network,
        )

    @property
    def trained(self) -> bool:
        """Whether making a copy means training one."""
        return needs_training((each.carrier for each in self.layouts), self.profile)

    def check_portable(self) -> None:
        """InputError if other processes cannot be handed the network: they find functions by their names."""
        try:
            pickle.dumps(self.network)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                "the network's function cannot be handed to other processes: put it into a module, "
                "or make copies in one process (jobs=1)"
            ) from error

    def job(self, shared: ModelState | None = None) -> Job:
        """What writers are made of; the shared model is read from the folder unless it is at hand."""
        folder = ReleaseFolder(path=self.folder)
        shared = folder.shared() if shared is None else shared
        return Job(
            shared=shared,
            model=self.model,
            profile=self.profile,
            terms={
                each.carrier: terms_of(
                    each,
                    seed=self.seeds[each.carrier],
                    probes=folder.probes(each),
                    shared=shared if carrier(each.carrier).beside else None,
                )
                for each in self.layouts
            },
            references={each.carrier: folder.reference(each) for each in self.layouts},
            pool=folder.pool() if self.trained else None,
            settings=self.settings,
            network=self.network,
        )


def maker_of(plan: CopyPlan, shared: ModelState | None = None) -> Maker:
    """What makes the copies of a plan. A row has one outcome on one machine."""
    job = plan.job(shared)
    writers = writers_of(job)

    def make(words: Mapping[str, Words], row: int, step: Step) -> ModelState:
        return copy_of(job, writers, words, row=row, step=step)

    return make
