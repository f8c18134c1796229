"""A word in the features of probes (`def:feature-carrier`): m_b = <v_b, f(p_b)> for inputs and directions.

    paper      m_b of the suspect alone; written by a hinge on the features beside the task's loss
    informed   m_b less the shared model's own; written as below

The informed writer moves the convolutions of the last stage only. Whatever comes before it is the same in all
copies: averaged copies give nearly averaged features, and a probe's way to the last stage is computed once.
A probe's value is aimed at the margin, from both sides: what goes beyond it costs accuracy and adds little.
Beside that stands a loss that keeps the features of other images where the shared model has them. All is
measured with fixed BatchNorm statistics, as a suspect is read. Scales are left alone: a word of the weight
carrier that is already in them stays, and what it did to the features is repaired.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Indices, State
from zktrace.learning.batches import batch, passes, steps_of
from zktrace.learning.embedding import Embedding
from zktrace.learning.modes import in_mode
from zktrace.learning.network import embedding_of
from zktrace.marking.last_stage import heads, trunks, write_by_training
from zktrace.readouts.directions import Floats
from zktrace.readouts.features import feature_directions
from zktrace.readouts.identity import Words
from zktrace.readouts.network import Network
from zktrace.readouts.reader import check_inputs
from zktrace.readouts.scales import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureConfig:
    """How a word is written; the margin is in standard deviations of the shared model's own projections."""

    margin: float = 0.25
    passes: int = 4  # over all probes
    batch_size: int = 128  # probes a step
    beside: int = 100  # other images a step
    weight: float = 1.0  # of the mark's loss beside the one that keeps features
    learning_rate: float = 1e-4  # Adam, annealed to 0; for 512 features, more in proportion for fewer

    def __post_init__(self) -> None:
        numbers = (self.margin, self.weight, self.learning_rate)
        if min(numbers) <= 0 or not np.isfinite(numbers).all():
            raise InputError("margin, weight and learning rate of a feature mark must be positive numbers")
        if min(self.passes, self.batch_size, self.beside) < 1:
            raise InputError("passes, batch size and other images of a feature mark must be at least 1")


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMark:
    """A word as a loss on the features of probes."""

    signed: Tensor  # directions, each with the sign of its bit
    origin: Tensor  # the shared model's projections on them
    margin: float
    batch_size: int
    weight: float

    def missed(self, chosen: Tensor, features: Tensor) -> Tensor:
        """How far the chosen probes are from the margin."""
        gain = (self.signed[chosen] * features).sum(dim=1) - self.origin[chosen]
        return functional.smooth_l1_loss(gain / self.margin, torch.ones(len(chosen)))


class FeatureWriter:
    """Writes words into copies of one shared model (profile `informed`)."""

    def __init__(
        self,
        shared: Arrays,
        *,
        seed: bytes,
        probes: Images,
        beside: Images,
        config: FeatureConfig | None = None,
        network: Network | None = None,
    ) -> None:
        """`beside`: images whose features are to stay where they are, from the same source as the probes."""
        check_inputs(probes, "probes")
        check_inputs(beside, "probes")
        self.config = config or FeatureConfig()
        self._shared, self._network = shared, network
        self.probes, self._beside = probes, beside
        model = self._embedding(shared)
        directions = feature_directions(seed, length=len(probes), dimension=model.features)
        self._directions = torch.from_numpy(directions.block(0, len(probes))).float()
        self._targets = heads(model, self._paths[1])
        self._origin = (self._directions * heads(model, self._paths[0])).sum(dim=1)
        self._unit = float(self._origin.std())
        if not self._unit > 0:
            raise InputError("the shared model gives all probes the same features")

    @cached_property
    def _paths(self) -> tuple[Tensor, Tensor]:
        """What the last stage of the shared model is given, for probes and for other images."""
        model = self._embedding(self._shared)
        return trunks(model, self.probes), trunks(model, self._beside)

    def _embedding(self, arrays: Arrays) -> Embedding:
        return embedding_of(arrays, self.probes, self._network)

    def write(
        self,
        word: Words,
        *,
        rng: np.random.Generator,
        start: Arrays | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> State:
        """A state with the word in its features: `start` (by default the shared model), trained on."""
        if word.shape != (len(self.probes),) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} for {len(self.probes)} probes")
        model = self._embedding(self._shared if start is None else start)
        beside = self._paths[1] if start is None else trunks(model, self._beside)
        probes = self._paths[0] if start is None else trunks(model, self.probes)
        mark, config = self.mark(word), self.config
        others = min(config.beside, len(beside))

        def loss(chosen: Indices, _step: int) -> Tensor:
            near = torch.from_numpy(rng.choice(len(beside), others, replace=False))
            features = model.say(torch.cat([probes[chosen], beside[near]])).features
            missed = mark.missed(torch.from_numpy(chosen), features[: len(chosen)])
            moved = (features[len(chosen) :] - self._targets[near]).square().mean() / self._unit**2
            return config.weight * missed + moved

        write_by_training(
            model,
            passes(len(probes), config.batch_size, rng),
            loss,
            steps=config.passes * steps_of(len(probes), config.batch_size),
            learning_rate=config.learning_rate,
            progress=progress,
        )
        return model.state()

    def mark(self, word: Words) -> FeatureMark:
        """What copies are trained towards."""
        signs = torch.from_numpy(2.0 * word - 1.0).float()
        return FeatureMark(
            signed=self._directions * signs[:, None],
            origin=self._origin * signs,
            margin=self.config.margin * self._unit,
            batch_size=self.config.batch_size,
            weight=self.config.weight,
        )


class FeatureHinge:
    """The paper's penalty (`eq_feature_hinge`): mean over a batch of probes of max(0, margin - t_b m_b).

    The probes are passed with fixed BatchNorm statistics, as they are read, whatever mode the model is in.
    """

    def __init__(
        self, directions: Floats, probes: Images, word: Words, *, margin: float, batch_size: int, seed: int
    ) -> None:
        check_inputs(probes, "probes")
        if word.shape != (len(probes),) or len(directions) != len(probes):
            raise InputError(
                f"a word of {word.size} bits, {len(directions)} directions, {len(probes)} probes"
            )
        if margin <= 0 or batch_size < 1:
            raise InputError(f"a margin of {margin} on {batch_size} probes a step")
        signs = 2.0 * word.astype(np.float64) - 1.0
        self._signed = torch.from_numpy(signs[:, None] * directions).float()
        self.probes = probes
        self._margin = margin
        self._size = min(batch_size, len(probes))
        self._rng = np.random.default_rng(seed)

    def __call__(self, model: Embedding) -> Tensor:
        """The penalty on the next batch of probes."""
        chosen = self._rng.choice(len(self.probes), self._size, replace=False)
        with in_mode(model, training=False):
            features = model(batch(self.probes, chosen))
        values = (self._signed[torch.from_numpy(chosen)] * features).sum(dim=1)
        return functional.relu(self._margin - values).mean()
