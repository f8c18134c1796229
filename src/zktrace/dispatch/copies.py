"""Making one copy: the shared model and a station's words in, a marked state out. Knows words, not stations.

With several carriers the weight word is written first, in closed form; the training that writes feature and
output words, in one run, then leaves the scales alone and repairs what the weight word did to the features.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import needs_training
from zktrace.dispatch.releases import ReleaseFolder
from zktrace.errors import InputError
from zktrace.marking.weight import SHARE, WeightWriter
from zktrace.models import ModelState, Tensor
from zktrace.readouts.identity import Words
from zktrace.readouts.suspects import plain_names
from zktrace.registry.records import Layout

MU: Final = 1.0
LAMBDA: Final = 6.0
EPISODES: Final = 300
PUSH: Final = 0.1

Step = Callable[[float], None]  # the share of one copy's work that is done


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """How strongly copies are marked, and for how long they are trained where they are."""

    share: float = SHARE  # weight carrier, informed: of the norm of the scales
    episodes: int = EPISODES  # paper
    mu: float = MU  # paper: margin of the hinge
    lambda_t: float = LAMBDA  # paper: its weight
    learning_rate: float | None = None  # paper; None: that of the release's proxy data
    push_margin: float = (
        PUSH  # paper, weight carrier: given to every bit before the episodes; 0: the hinge alone
    )
    feature: dict[str, float] = field(default_factory=dict)  # informed: fields of a FeatureConfig
    output: dict[str, float] = field(default_factory=dict)  # informed: fields of an OutputConfig

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"a share of {self.share}: must lie above 0 and at most at 1")
        if self.episodes < 1 or not 0 < self.mu < np.inf or not 0 < self.lambda_t < np.inf:
            raise InputError("a copy needs at least one episode, a positive margin and a positive weight")
        if not 0 <= self.push_margin < np.inf:
            raise InputError(f"a push to a margin of {self.push_margin}: must be a number of at least 0")

    def heeded(self, carriers: Sequence[str], profile: str) -> dict[str, Any]:
        """The settings that copies of this kind depend on."""
        if profile == "paper":
            names = ("episodes", "mu", "lambda_t", "push_margin", "learning_rate")
            return {name: getattr(self, name) for name in names}
        found: dict[str, Any] = {"share": self.share} if "weight" in carriers else {}
        found |= {"feature": self.feature} if "feature" in carriers else {}
        return found | ({"output": self.output} if "output" in carriers else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """All that copies of a release have in common; a worker process rebuilds its maker from it."""

    folder: Path
    layouts: tuple[Layout, ...]
    seeds: dict[str, bytes]  # of the directions, by carrier
    lengths: dict[str, int]  # of the words
    model: bytes  # digest of the shared model
    settings: CopySettings

    @property
    def carriers(self) -> tuple[str, ...]:
        """What a copy carries."""
        return tuple(layout.carrier for layout in self.layouts)

    @property
    def profile(self) -> str:
        """One for all carriers of a release."""
        return self.layouts[0].profile

    @property
    def trained(self) -> bool:
        """Whether making a copy means training one."""
        return needs_training(self.carriers, self.profile)

    def layout(self, carrier: str) -> Layout:
        """How a carrier is read."""
        return next(each for each in self.layouts if each.carrier == carrier)

    def weight_writer(self) -> WeightWriter:
        """The closed form."""
        return WeightWriter(
            seed=self.seeds["weight"], length=self.lengths["weight"], layers=self.layout("weight").layers
        )


Maker = Callable[[Mapping[str, Words], int, Step], ModelState]  # words by carrier, row, progress -> a copy


def maker_of(plan: CopyPlan) -> Maker:
    """What makes the copies of a plan. Torch is loaded only where copies are trained."""
    shared = ReleaseFolder(path=plan.folder).shared()
    if plan.trained:
        from zktrace.dispatch.trained import trained_maker  # noqa: PLC0415

        return trained_maker(plan, shared)
    writer, share = plan.weight_writer(), plan.settings.share

    def make(words: Mapping[str, Words], row: int, step: Step) -> ModelState:
        return writer.write(shared, words["weight"], share=share).state

    return make


def merged(shared: ModelState, trained: Mapping[str, NDArray[Any]]) -> ModelState:
    """`shared` with the arrays that training changed: same names, same order, same element types."""
    given = {name: plain for plain, name in plain_names(shared).items()}
    return ModelState(_merged(each, trained.get(given.get(each.name, ""))) for each in shared.tensors())


def _merged(tensor: Tensor, new: NDArray[Any] | None) -> Tensor:
    if new is None:
        return tensor
    old = tensor.array()
    rounded = new.astype(old.dtype)
    return tensor if np.array_equal(rounded, old) else Tensor.from_array(tensor.name, rounded)
