"""Writing bits into scales by training: the hinge of `eq_watermark_loss` as a term of the loss."""

import torch
from torch import Tensor, nn

from zktrace.errors import InputError
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.scales import scale_names


def scales(model: nn.Module) -> Tensor:
    """gamma of a model, with its gradient, in the carrier's order."""
    return torch.cat([*_layers(model)])


def _layers(model: nn.Module) -> list[nn.Parameter]:
    parameters = dict(model.named_parameters())
    names = scale_names(model.state_dict().keys())
    if not names:
        raise InputError("the model has no BatchNorm scales to write")
    return [parameters[name] for name in names]


class HingePenalty:
    """mean over the active bits of max(0, margin - t_b <gamma, E_b>); each step drops bits at random."""

    def __init__(
        self, directions: Floats, word: Words, *, margin: float = 1.0, drop: float = 0.5, seed: int
    ) -> None:
        """`directions`: one a row; `word`: 0 and 1; `drop`: the chance that a bit sits out a step."""
        if word.shape != (len(directions),):
            raise InputError(f"a word of {word.size} bits for {len(directions)} directions")
        if not 0.0 <= drop < 1.0 or margin <= 0.0:
            raise InputError(f"a margin of {margin} with a drop rate of {drop}")
        signs = torch.from_numpy(2.0 * word.astype("float64") - 1.0)
        self._signed = (signs[:, None] * torch.from_numpy(directions)).to(torch.float32)
        self._margin = margin
        self._drop = drop
        self._random = torch.Generator().manual_seed(seed)

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty at the model's present scales."""
        signed = self._signed
        if self._drop:
            active = torch.rand(len(signed), generator=self._random) >= self._drop
            signed = signed[active]
        gamma = self._checked(scales(model))
        if not len(signed):
            return gamma.sum() * 0.0
        return torch.relu(self._margin - signed @ gamma).mean()

    def push(self, model: nn.Module, *, margin: float) -> None:
        """Move the scales, and nothing else, by the least that gives every bit at least `margin`.

        Bits that have it already are left alone, so another may fall short by what its neighbours moved; the
        next push finds it. It costs one small solve, and the episodes that follow repair what it disturbs.
        """
        layers = _layers(model)
        with torch.no_grad():
            gamma = self._checked(scales(model))
            lacking = margin - self._signed @ gamma
            short = self._signed[lacking > 0].double()
            if not len(short):
                return
            weights = torch.linalg.lstsq(short @ short.T, lacking[lacking > 0, None].double()).solution
            gamma = (gamma + (short.T @ weights)[:, 0]).to(gamma.dtype)
            for layer, part in zip(layers, gamma.split([len(layer) for layer in layers]), strict=True):
                layer.copy_(part)

    def _checked(self, gamma: Tensor) -> Tensor:
        if self._signed.shape[1] != len(gamma):
            raise InputError(f"the model has {len(gamma)} scales, the directions {self._signed.shape[1]}")
        return gamma
