"""How strongly copies are marked, and for how long they are trained where they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from zktrace.carriers import carrier
from zktrace.errors import InputError

STRENGTH: Final = 0.01  # of the deviation of a tensor's weights: what a weight is moved by
_USUAL: Final = 1 << 20  # weights that carry: in a smaller model each is moved by more
_MOST: Final = 4.0  # times as much
SHARE: Final = 0.03  # of the norm of all scales: what a copy's scales are moved by
MU: Final = 1.0
LAMBDA: Final = 6.0
EPISODES: Final = 300
PUSH: Final = 0.1
_PAPER: Final = ("episodes", "mu", "lambda_t", "push_margin", "learning_rate")


def usual_strength(weights: int) -> float:
    """What suits a model in which so many weights carry: a mark that is read as well from few weights.

    A reading grows with the strength and with the square root of the number of weights; what a copy costs
    grows with the strength alone. docs/spread.md has the measurements that this was chosen on.
    """
    return STRENGTH * min(max(math.sqrt(_USUAL / max(weights, 1)), 1.0), _MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """What a writer may be told."""

    strength: float | None = None  # spread carrier: of a tensor's deviation; None: by the model's size
    share: float = SHARE  # weight carrier, informed: of the norm of the scales
    episodes: int = EPISODES  # paper
    mu: float = MU  # paper: margin of the hinge
    lambda_t: float = LAMBDA  # paper: its weight
    learning_rate: float | None = None  # paper; None: that of the release's proxy data
    push_margin: float = (
        PUSH  # paper, weight carrier: given to every bit before the episodes; 0: the hinge alone
    )
    marks: Mapping[str, Mapping[str, float]] = field(  # informed, trained: by carrier, fields of its config
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.strength is not None and not 0.0 < self.strength <= 1.0:
            raise InputError(f"a strength of {self.strength}: must lie above 0 and at most at 1")
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"a share of {self.share}: must lie above 0 and at most at 1")
        if self.episodes < 1 or not 0 < self.mu < np.inf or not 0 < self.lambda_t < np.inf:
            raise InputError("a copy needs at least one episode, a positive margin and a positive weight")
        if not 0 <= self.push_margin < np.inf:
            raise InputError(f"a push to a margin of {self.push_margin}: must be a number of at least 0")
        for each in self.marks:
            if not carrier(each).trained:
                raise InputError(f"the {each} carrier is not trained: it has no marks to set")

    def mark(self, name: str) -> Mapping[str, float]:
        """What a trained carrier is told beside its defaults."""
        return self.marks.get(name, {})

    def heeded(self, carriers: Sequence[str], profile: str) -> dict[str, Any]:
        """The settings that copies of this kind depend on."""
        if profile == "paper":
            return {name: getattr(self, name) for name in _PAPER}
        known = [carrier(each) for each in carriers]
        found: dict[str, Any] = {each.setting: getattr(self, each.setting) for each in known if each.setting}
        return found | {each.name: dict(self.mark(each.name)) for each in known if each.trained}
