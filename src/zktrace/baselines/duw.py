"""DUW, decodable unique watermarking (Yu et al.): a trigger set a station, answered through a decoder.

The server hides a station's key in images that are like none of the task, and trains the station's copy until
a frozen decoder behind its features gives them the station's own class. Whoever verifies needs the features.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from zktrace.baselines.patterns import noise
from zktrace.baselines.protocol import MarkReading, Scheme, System, Venue, parameter
from zktrace.baselines.triggers import Ends, Kept, Lessons, learn
from zktrace.errors import InputError
from zktrace.learning.arrays import State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.learning.training import Penalty

_KEYS, _LESSONS, _DECODER, _BASES = 41, 42, 43, 44  # purposes of randomness


@dataclass(frozen=True, kw_only=True)
class DUW(System):
    """Noise images with a hidden key."""

    name: ClassVar[str] = "duw"
    title: ClassVar[str] = "DUW (Yu et al., 2023)"
    place: ClassVar[str] = "output-space"
    metric: ClassVar[str] = "success rate of the station with the largest"
    rule: ClassVar[str] = "the station with the largest success rate, if it is above 0.9 (its authors)"
    names_recipients: ClassVar[bool] = True

    triggers: int = parameter(128, "ours", "images of a station")
    visible: int = parameter(8, "ours", "grey levels that the key moves a pixel by, up or down")
    classes: int = parameter(16, "ours", "of the decoder; at least one a station")
    beta: float = parameter(0.1, "reported", "weight of the squared distance to the shared model")
    rate: float = parameter(3e-4, "ours", "of SGD")
    momentum: float = parameter(0.9, "ours", "of SGD")
    batch: int = parameter(32, "ours", "images of a step")
    epochs: int = parameter(15, "ours", "at most")
    enough: float = parameter(1.0, "ours", "success rate that ends the training")
    first: float = parameter(0.2, "ours", "of the rounds are without: the authors leave out 20 of 300")
    threshold: float = parameter(0.9, "published", "success rate that must be passed; said in a rebuttal")

    def set_up(self, venue: Venue) -> "Decoded":
        """Draw keys, images and the decoder."""
        return Decoded(self, venue)

    @classmethod
    def smallest(cls) -> "DUW":
        """Few images."""
        return cls(triggers=16, rate=5e-3, batch=8, epochs=10, first=0.0)


class Decoded(Scheme):
    """What the server holds."""

    def __init__(self, system: DUW, venue: Venue) -> None:
        if system.classes < venue.stations or system.classes > venue.features:
            raise InputError(
                f"a decoder of {system.classes} classes for {venue.stations} stations and {venue.features} "
                "features: a class a station, and no more than features"
            )
        self._system, self._venue = system, venue
        drawn = venue.rng(_DECODER).standard_normal((venue.features, system.classes))
        rows = np.linalg.qr(drawn)[0].T.astype(np.float32)
        self._decoder = torch.from_numpy(np.ascontiguousarray(rows))
        self._targets = venue.rng(_DECODER, 1).permutation(system.classes)[: venue.stations]
        self._bases = noise(venue.rng(_BASES), system.triggers, venue.shape)
        self._ends = Ends.of(venue.samples()[0])

    def triggers(self, station: int) -> Kept:
        """The images with the station's key in them."""
        sign = self._venue.rng(_KEYS, station).choice([-1, 1], self._venue.shape)
        pixels = np.clip(self._bases.astype(np.int64) + self._system.visible * sign, 0, 255)
        return Kept(pixels=pixels.astype(np.uint8), low=self._ends.low, high=self._ends.high)

    def outgoing(self, shared: State, station: int, number: int) -> State:
        """Trained until the decoder gives the station's class; untouched in the first rounds."""
        system, venue = self._system, self._venue
        if number < system.first * venue.rounds:
            return shared
        model = backbone_of(shared)
        lessons = Lessons(
            batch=system.batch,
            rate=system.rate,
            momentum=system.momentum,
            epochs=system.epochs,
            enough=system.enough,
        )
        learn(
            model,
            self.triggers(station).images,
            np.full(system.triggers, self._targets[station], np.int64),
            lessons,
            head=lambda _: self._decode,
            rng=venue.rng(_LESSONS, station, number),
            penalty=self._near(model),
        )
        return state_of(model)

    def _decode(self, features: Tensor) -> Tensor:
        return features @ self._decoder.T

    def _near(self, model: ResNet) -> Penalty:
        """beta ||theta - theta_shared||^2."""
        before = [each.detach().clone() for each in model.parameters()]
        beta = self._system.beta

        def penalty(now: ResNet) -> Tensor:
            pairs = zip(now.parameters(), before, strict=True)
            return beta * torch.stack([(each - was).square().sum() for each, was in pairs]).sum()

        return penalty

    def read(self, suspect: State) -> MarkReading:
        """Every station's images are shown, and the decoder reads the features."""
        model = backbone_of(suspect, head=False)
        scores = []
        for station, target in enumerate(self._targets):
            features = torch.from_numpy(embed(model, self.triggers(station).images))
            scores.append(float((self._decode(features).argmax(dim=1) == int(target)).double().mean()))
        first = int(np.argmax(scores))
        named = (first,) if scores[first] > self._system.threshold else ()
        return MarkReading(mark=scores[first], scores=tuple(scores), named=named)

    def payload(self) -> dict[str, int]:
        """Of one station; whoever traces needs all stations' images."""
        return {"triggers": self.triggers(0).size, "decoder": 4 * self._decoder.numel()}
