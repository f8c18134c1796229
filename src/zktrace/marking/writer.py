"""How copies are written: one writer for each carrier and profile, found by the carriers' table.

A writer puts the words of one carrier or more into a state. Those in closed form come first and need numpy
alone. Carriers that are trained in one run share a writer, which then leaves alone what was written before.
Writers know words, not stations.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zktrace.carriers import Profile, carrier, needs_training
from zktrace.errors import InputError
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState
from zktrace.primitives.loading import loaded
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.network import Network
from zktrace.readouts.reader import Terms
from zktrace.readouts.samples import Pool

Step = Callable[[float], None]  # the share of one copy's work that is done


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """What all copies of a release have in common."""

    shared: ModelState
    model: bytes  # its digest
    profile: Profile
    terms: Mapping[str, Terms]  # by carrier, in the order of the release
    references: Mapping[str, Floats | None]
    pool: Pool | None  # images that copies are trained on
    settings: CopySettings
    network: Network | None = None  # by which copies are trained, if it is none of this package's

    @property
    def trained(self) -> bool:
        """Whether making a copy means training one."""
        return needs_training(self.terms, self.profile)


class Writer(ABC):
    """Writes the words of some carriers into copies of one shared model."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        self.job = job
        self.carriers = carriers

    @abstractmethod
    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """`state`, which others may have written to, with the words of this writer's carriers in it."""


def writers_of(job: Job) -> tuple[Writer, ...]:
    """Who writes the copies of a job, in their order. Torch is loaded only where copies are trained."""
    groups: dict[str, list[str]] = {}
    for name in sorted(job.terms, key=lambda each: carrier(each).trained):
        try:
            groups.setdefault(carrier(name).writers[job.profile], []).append(name)
        except KeyError:
            able = " and ".join(carrier(name).profiles)
            raise InputError(f"the {name} carrier has the profile {able} only, not {job.profile}") from None
    made = []
    for place, names in groups.items():
        kind: type[Writer] = loaded(place)
        made.append(kind(job, tuple(each for each in job.terms if each in names)))
    return tuple(made)


def copy_of(
    job: Job, writers: tuple[Writer, ...], words: Mapping[str, Words], *, row: int, step: Step
) -> ModelState:
    """One marked copy."""
    state = job.shared
    for each in writers:
        state = each.write(state, words, row=row, step=step)
    return state
