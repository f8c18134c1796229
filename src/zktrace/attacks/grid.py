"""The paper's grids of attacks (`sub:attack-protocol`) as data: families, their parameters, and what they do.

    prune, structured         the smallest BatchNorm scales, alone or with their channels (attack 1)
    noise, quantise           of BatchNorm scales (2, 3)
    prune-quantise            one after the other (4)
    pgd                       steps against bits, in a ball around the marked scales (5)
    reset                     the scales of stages become 1 (6)
    finetune, distill         training on, and a fresh student of the features (7, 8)
    prune-all, noise-all, quantise-all     every matrix, or every trained array: not in the paper

The paper gives the ends of some grids and not what lies between; it does not say which six configurations
attack 4 has. What stands here for these is ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from zktrace.attacks.distill import DistillConfig, distill
from zktrace.attacks.flips import NORMS, KnownBits, flip_bits, guessed_bits
from zktrace.attacks.scales import (
    STAGES,
    noise_scales,
    prune_scales,
    quantise_all,
    quantise_scales,
    reset_scales,
)
from zktrace.attacks.training import finetune
from zktrace.attacks.weights import noise_matrices, prune_matrices
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, Images, Labels, State
from zktrace.learning.configs import EpisodicConfig

Parameters = Mapping[str, Any]  # as JSON has them
GUESSES: Final = 512  # directions of an attacker who knows none: as many as the weight carrier has


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equipment:
    """All that an attacker of the grid has beside the model."""

    rng: np.random.Generator
    samples: Callable[[], tuple[Images, Labels]]  # its own data; only who trains asks for them
    episodes: EpisodicConfig  # how it trains on, but for how long
    bits: KnownBits | None = None  # of a mark that is public; None: it guesses
    checkpoint: Path | None = None  # where a student is kept after every epoch
    report: Callable[[int, int], None] = lambda _done, _of: None  # epochs of a student


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One point of the grid."""

    family: str
    parameters: Parameters

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InputError(f"no attack {self.family!r}; known: {', '.join(FAMILIES)}")

    @property
    def trained(self) -> bool:
        """Whether the attacker needs data."""
        return self.family in TRAINED

    def facts(self) -> dict[str, Any]:
        """What rows say of it."""
        return {"family": self.family, "parameters": dict(self.parameters)}

    def __call__(self, state: Arrays, equipment: Equipment) -> State:
        return FAMILIES[self.family](state, equipment, **self.parameters)


def _none(state: Arrays, _: Equipment) -> State:
    return {name: np.array(array) for name, array in state.items()}


def _prune(state: Arrays, _: Equipment, *, share: float) -> State:
    return prune_scales(state, share=share)


def _structured(state: Arrays, _: Equipment, *, share: float) -> State:
    return prune_scales(state, share=share, structured=True)


def _noise(state: Arrays, has: Equipment, *, sigma: float) -> State:
    return noise_scales(state, sigma=sigma, rng=has.rng)


def _quantise(state: Arrays, _: Equipment, *, bits: int) -> State:
    return quantise_scales(state, bits=bits)


def _prune_quantise(state: Arrays, _: Equipment, *, share: float, bits: int) -> State:
    return quantise_scales(prune_scales(state, share=share), bits=bits)


def _pgd(state: Arrays, has: Equipment, *, norm: str, epsilon: float) -> State:
    known = guessed_bits(state, GUESSES, has.rng) if has.bits is None else has.bits
    return flip_bits(state, known, norm=norm, radius=epsilon)


def _reset(state: Arrays, _: Equipment, *, stages: Sequence[str]) -> State:
    return reset_scales(state, stages=stages)


def _finetune(state: Arrays, has: Equipment, *, episodes: int) -> State:
    images, labels = has.samples()
    return finetune(state, images, labels, replace(has.episodes, episodes=episodes), has.rng)


def _distill(state: Arrays, has: Equipment, *, epochs: int) -> State:
    images, labels = has.samples()
    return distill(
        [state],
        images,
        labels,
        DistillConfig(objective="features", epochs=epochs),
        has.rng,
        checkpoint=has.checkpoint,
        resume=has.checkpoint is not None,
        progress=lambda each: has.report(each.epoch, each.epochs),
    )


def _prune_all(state: Arrays, _: Equipment, *, share: float) -> State:
    return prune_matrices(state, share=share)


def _noise_all(state: Arrays, has: Equipment, *, sigma: float) -> State:
    return noise_matrices(state, sigma=sigma, rng=has.rng)


def _quantise_all(state: Arrays, _: Equipment, *, bits: int) -> State:
    return quantise_all(state, bits=bits)


FAMILIES: Final[Mapping[str, Callable[..., State]]] = {
    "none": _none,
    "prune": _prune,
    "structured": _structured,
    "noise": _noise,
    "quantise": _quantise,
    "prune-quantise": _prune_quantise,
    "pgd": _pgd,
    "reset": _reset,
    "finetune": _finetune,
    "distill": _distill,
    "prune-all": _prune_all,
    "noise-all": _noise_all,
    "quantise-all": _quantise_all,
}
TRAINED: Final = {"finetune": "episodes", "distill": "epochs"}  # and what says for how long


def _each(name: str, *values: float | list[str]) -> tuple[Parameters, ...]:
    return tuple({name: each} for each in values)


_SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
_LAST: Final = ["layer3", "layer4"]
GRIDS: Final[Mapping[str, Mapping[str, tuple[Parameters, ...]]]] = {
    "paper": {
        "none": ({},),
        "prune": _each("share", *_SHARES),
        "structured": _each("share", *_SHARES),
        "noise": _each("sigma", 0.01, 0.05, 0.1, 0.5, 1.0, 2.0),
        "quantise": _each("bits", 16, 8, 6, 4, 3, 2),
        "prune-quantise": tuple(
            {"share": share, "bits": bits} for share in (0.1, 0.3, 0.5) for bits in (8, 4)
        ),
        "pgd": tuple({"norm": norm, "epsilon": each} for norm in NORMS for each in (0.05, 0.1, 0.2)),
        "reset": _each("stages", *([each] for each in STAGES), _LAST, ["layer2", *_LAST], list(STAGES)),
        "finetune": _each("episodes", 10, 50, 100, 200, 500),
        "distill": _each("epochs", 5, 10, 20, 50, 80, 100),
        "prune-all": _each("share", 0.3, 0.5, 0.7),
        "noise-all": _each("sigma", 0.01, 0.05, 0.1, 0.2, 0.5),
        "quantise-all": _each("bits", 8, 6, 4, 3, 2),
    },
    "table": {  # the points of `tab:attacks`, which does not tell the norm of its PGD
        "none": ({},),
        "structured": _each("share", 0.5),
        "noise": _each("sigma", 2.0),
        "quantise": _each("bits", 2),
        "pgd": tuple({"norm": norm, "epsilon": 0.1} for norm in NORMS),
        "reset": _each("stages", _LAST),
        "finetune": _each("episodes", 100),
        "distill": _each("epochs", 80),
    },
    "short": {
        "none": ({},),
        "prune": _each("share", 0.5),
        "structured": _each("share", 0.5),
        "noise": _each("sigma", 2.0),
        "quantise": _each("bits", 2),
        "prune-quantise": ({"share": 0.5, "bits": 4},),
        "pgd": tuple({"norm": norm, "epsilon": 0.1} for norm in NORMS),
        "reset": _each("stages", _LAST),
        "finetune": _each("episodes", 100),
        "distill": _each("epochs", 5),
        "prune-all": _each("share", 0.5),
        "noise-all": _each("sigma", 0.05),
        "quantise-all": _each("bits", 4),
    },
}


def grid(
    name: str, families: Sequence[str] = (), *, lengths: Mapping[str, Sequence[int]] | None = None
) -> list[Attack]:
    """The attacks of a grid, or of some of its families; `lengths`: for how long those who train do."""
    if name not in GRIDS:
        raise InputError(f"no grid {name!r}; known: {', '.join(GRIDS)}")
    if unknown := [each for each in families if each not in FAMILIES]:
        raise InputError(f"no attack {unknown[0]!r}; known: {', '.join(FAMILIES)}")
    points = dict(GRIDS[name])
    for family, values in (lengths or {}).items():
        points[family] = _each(TRAINED[family], *values)
    return [
        Attack(family=family, parameters=each)
        for family, some in points.items()
        if not families or family in families
        for each in some
    ]
