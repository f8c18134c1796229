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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import cosine
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import State, state_of
from zktrace.learning.training import Images, batch
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.scales import Arrays
from zktrace.readouts.suspects import plain
from zktrace.readouts.weight import Profile, check_reference, finite, less_reference

LABEL: Final = "feature"
_FEATURES: Final = 512  # of a ResNet-18 of full width
_CHUNK: Final = 256  # images at a time where nothing is trained

Build = Callable[[Arrays], ResNet]


def feature_directions(seed: bytes, *, length: int, dimension: int) -> Directions:
    """The family v of the feature carrier, one direction a probe."""
    return Directions(label=LABEL, seed=seed, dimension=dimension, count=length)


def check_probes(probes: Images) -> None:
    """Refuse what cannot be a set of probes."""
    if probes.ndim != 4 or probes.dtype != np.float32 or not probes.size:
        raise InputError(
            f"probes of shape {probes.shape} and type {probes.dtype}: images in float32 are needed"
        )
    if not np.isfinite(probes).all():
        raise InputError("a probe has numbers that are not finite")


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureReader:
    """Reads one value a probe from a model. Made without anything that depends on a row."""

    seed: bytes
    probes: Images
    profile: Profile
    reference: Floats | None = None  # the shared model's own projections; informed reading is less these
    dimension: int | None = None  # the shared model's number of features; None: any
    build: Build = backbone_of

    def __post_init__(self) -> None:
        check_probes(self.probes)
        check_reference(self.profile, self.reference, len(self.probes))

    def project(self, arrays: Arrays) -> Floats:
        """<v_b, f(p_b)> of one model alone. Of the shared model, they are the reference."""
        model = self.build(plain(arrays))
        if model.channels != self.probes.shape[1]:
            raise InputError(
                f"the model takes images of {model.channels} channels, the probes have {self.probes.shape[1]}"
            )
        if self.dimension not in (None, model.features):
            raise InputError(f"the model has {model.features} features, the release's has {self.dimension}")
        features = embed(model, self.probes).astype(np.float64)
        directions = feature_directions(self.seed, length=len(features), dimension=model.features)
        parts = [
            np.einsum("bd,bd->b", block, features[first : first + len(block)])
            for first, block in directions.blocks()
        ]
        return finite(np.concatenate(parts))

    def read(self, arrays: Arrays) -> Floats:
        """The readout of a suspect."""
        return less_reference(self.project(arrays), self.profile, self.reference)


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
    ) -> None:
        """`beside`: images whose features are to stay where they are, from the same source as the probes."""
        check_probes(probes)
        check_probes(beside)
        self.config = config or FeatureConfig()
        self._shared = plain(shared)
        self._probes, self._beside = probes, beside
        model = backbone_of(self._shared)
        directions = feature_directions(seed, length=len(probes), dimension=model.features)
        self._directions = torch.from_numpy(directions.block(0, len(probes))).float()
        self._targets = _heads(model, self._paths[1])
        self._origin = (self._directions * _heads(model, self._paths[0])).sum(dim=1)
        self._unit = float(self._origin.std())
        if not self._unit > 0:
            raise InputError("the shared model gives all probes the same features")

    @cached_property
    def _paths(self) -> tuple[Tensor, Tensor]:
        """What the last stage of the shared model is given, for probes and for other images."""
        model = backbone_of(self._shared)
        return _trunks(model, self._probes), _trunks(model, self._beside)

    def write(
        self,
        word: Words,
        *,
        rng: np.random.Generator,
        start: Arrays | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> State:
        """A state with the word in its features: `start` (by default the shared model), trained on."""
        if word.shape != (len(self._probes),) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} for {len(self._probes)} probes")
        model = backbone_of(self._shared if start is None else plain(start))
        probes, beside = self._paths if start is None else _both_trunks(model, self._probes, self._beside)
        signs = torch.from_numpy(2.0 * word - 1.0).float()
        signed, origin = self._directions * signs[:, None], self._origin * signs
        with _only_convolutions(model.layer4) as trained:
            marks = (probes, signed, origin)
            self._train(model, trained, marks=marks, beside=beside, rng=rng, progress=progress)
        return state_of(model)

    def _train(
        self,
        model: ResNet,
        trained: list[nn.Parameter],
        *,
        marks: tuple[Tensor, Tensor, Tensor],
        beside: Tensor,
        rng: np.random.Generator,
        progress: Callable[[float], None] | None,
    ) -> None:
        config = self.config
        probes, signed, origin = marks
        rate = config.learning_rate * _FEATURES / model.features
        optimizer = torch.optim.Adam(trained, lr=rate)
        ones = torch.ones(config.batch_size)
        count = len(probes)
        steps = config.passes * -(-count // config.batch_size)
        others = min(config.beside, len(beside))
        step = 0
        for _ in range(config.passes):
            order = rng.permutation(count)
            for first in range(0, count, config.batch_size):
                chosen = torch.from_numpy(order[first : first + config.batch_size])
                near = torch.from_numpy(rng.choice(len(beside), others, replace=False))
                for group in optimizer.param_groups:
                    group["lr"] = cosine(rate, step, steps)
                features = _head(model, torch.cat([probes[chosen], beside[near]]))
                gain = (signed[chosen] * features[: len(chosen)]).sum(dim=1) - origin[chosen]
                missed = functional.smooth_l1_loss(gain / (config.margin * self._unit), ones[: len(chosen)])
                moved = (features[len(chosen) :] - self._targets[near]).square().mean() / self._unit**2
                optimizer.zero_grad()
                (config.weight * missed + moved).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                step += 1
                if progress is not None:
                    progress(step / steps)


class FeatureHinge:
    """The paper's penalty (`eq_feature_hinge`): mean over a batch of probes of max(0, margin - t_b m_b).

    The probes are passed with fixed BatchNorm statistics, as they are read, whatever mode the model is in.
    """

    def __init__(
        self, directions: Floats, probes: Images, word: Words, *, margin: float, batch_size: int, seed: int
    ) -> None:
        check_probes(probes)
        if word.shape != (len(probes),) or len(directions) != len(probes):
            raise InputError(
                f"a word of {word.size} bits, {len(directions)} directions, {len(probes)} probes"
            )
        if margin <= 0 or batch_size < 1:
            raise InputError(f"a margin of {margin} on {batch_size} probes a step")
        signs = 2.0 * word.astype(np.float64) - 1.0
        self._signed = torch.from_numpy(signs[:, None] * directions).float()
        self._probes = probes
        self._margin = margin
        self._size = min(batch_size, len(probes))
        self._rng = np.random.default_rng(seed)

    def __call__(self, model: ResNet) -> Tensor:
        """The penalty on the next batch of probes."""
        chosen = self._rng.choice(len(self._probes), self._size, replace=False)
        with _evaluating(model):
            features = model(batch(self._probes, chosen))
        values = (self._signed[torch.from_numpy(chosen)] * features).sum(dim=1)
        return functional.relu(self._margin - values).mean()


def _trunk(model: ResNet, x: Tensor) -> Tensor:
    """From images to the input of the last stage."""
    x = x.contiguous(memory_format=model.layout)
    x = functional.relu(model.bn1(model.conv1(x)))
    x = functional.max_pool2d(x, 3, stride=2, padding=1)
    x = model.layer3(model.layer2(model.layer1(x)))
    return x


def _head(model: ResNet, x: Tensor) -> Tensor:
    """From the input of the last stage to features."""
    features: Tensor = model.layer4(x).mean(dim=(2, 3))
    return features


def _trunks(model: ResNet, images: Images) -> Tensor:
    with torch.no_grad():
        places: list[NDArray[np.int64]] = [
            np.arange(first, min(first + _CHUNK, len(images))) for first in range(0, len(images), _CHUNK)
        ]
        return torch.cat([_trunk(model, batch(images, chosen)) for chosen in places])


def _both_trunks(model: ResNet, probes: Images, beside: Images) -> tuple[Tensor, Tensor]:
    return _trunks(model, probes), _trunks(model, beside)


def _heads(model: ResNet, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([_head(model, part) for part in torch.split(inputs, _CHUNK)])


@contextmanager
def _only_convolutions(stage: nn.Module) -> Iterator[list[nn.Parameter]]:
    """The convolutions of a stage, which alone have gradients inside the block."""
    norms = {
        id(each)
        for module in stage.modules()
        if isinstance(module, nn.BatchNorm2d)
        for each in module.parameters()
    }
    trained = [each for each in stage.parameters() if id(each) not in norms]
    for each in stage.parameters():
        each.requires_grad_(id(each) not in norms)
    try:
        yield trained
    finally:
        for each in stage.parameters():
            each.requires_grad_(True)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
