"""Everything that decides a federation: any process that holds a spec can rebuild its part of it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.data.recordings import listing_digest
from zktrace.learning.data.source import DataSource, source_of
from zktrace.learning.presets import Preset
from zktrace.learning.resnet import ResNet, resnet18, resnet34
from zktrace.learning.training import Penalty
from zktrace.readouts.identity import IdentityCodebook, Words


class Addition(Protocol):
    """What stations add to their loss beside the codewords: it goes with the spec to every process.

    A value that can be hashed and handed to another process; what it needs it makes from the spec.
    """

    def facts(self) -> dict[str, Any]:
        """What makes two of them the same."""

    def penalty(self, spec: "RunSpec", station: int, number: int) -> Penalty | None:
        """Of a station in a round (from 0); None where it adds nothing."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A preset, a seed, the stations' codewords, and where data lies on this machine."""

    preset: Preset
    seed: int
    words: tuple[bytes, ...]  # packed codewords in the order of the roster; none: no marks
    names: tuple[str, ...] = ()  # of the stations, in the same order; none: they are numbered
    rows: tuple[int, ...] = ()  # in the registry: their blocks of the codebook; none: 0, 1, 2 ...
    added: Addition | None = None  # to the stations' loss
    cifar10: Path | None = None
    cache: Path | None = None

    def __post_init__(self) -> None:
        if self.words and len(self.words) != self.preset.federation.clients:
            raise InputError(
                f"{len(self.words)} codewords for {self.preset.federation.clients} stations: one for each"
            )
        if self.names and len(self.names) != self.preset.federation.clients:
            raise InputError(f"{len(self.names)} names for {self.preset.federation.clients} stations")
        if len(set(self.names)) != len(self.names):
            raise InputError("two stations of a roster have the same name")
        if self.rows and len(self.rows) != self.preset.federation.clients:
            raise InputError(f"{len(self.rows)} rows for {self.preset.federation.clients} stations")

    @property
    def marked(self) -> bool:
        """Whether stations write their codewords."""
        return bool(self.words) and self.preset.marks.lambda_wm > 0

    @property
    def source(self) -> DataSource:
        """The samples, and who holds what of them."""
        federation = self.preset.federation
        return source_of(
            self.preset.data,
            seed=self.seed,
            stations=federation.clients,
            alpha=federation.alpha,
            cifar10=self.cifar10,
            cache=self.cache,
        )

    def codewords(self) -> Words:
        """(stations, bits) of 0 and 1."""
        packed = np.array([list(word) for word in self.words], dtype=np.uint8)
        return np.unpackbits(packed, axis=1, count=self.preset.marks.bits)

    def codebook(self, layers: tuple[int, ...]) -> IdentityCodebook:
        """The public directions of all stations, for a network with such BatchNorm layers."""
        marks = self.preset.marks
        return IdentityCodebook(
            stations=len(self.words), bits=marks.bits, layers=layers, raw=marks.raw, rows=self.rows
        )

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator of its own for every purpose, the same on every engine."""
        return np.random.default_rng([self.seed, *purpose])

    def facts(self) -> dict[str, Any]:
        """What makes two runs the same, whatever machine they ran on."""
        return {
            "preset": preset_facts(self.preset),
            "seed": self.seed,
            "words": hashlib.sha256(b"".join(self.words)).hexdigest(),
            **({"stations": list(self.names)} if self.names else {}),
            **({"rows": list(self.rows)} if self.rows else {}),
            **({"added": self.added.facts()} if self.added is not None else {}),
        }

    def digest(self) -> str:
        """SHA-256 of the facts."""
        return hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode()).hexdigest()


def preset_facts(preset: Preset) -> dict[str, Any]:
    """A preset without a machine's folders: recordings are known by what they list."""
    facts = preset.as_dict()
    if preset.data.dataset == "recordings":
        facts["data"]["folder"] = listing_digest(Path(preset.data.folder))
    return facts


def sample_counts(spec: RunSpec) -> tuple[int, ...]:
    """The training samples of every station as the plan deals them: the weights of the average."""
    _, plan = spec.source.load()
    return tuple(len(shard) for shard in plan.shards())


def build_model(spec: RunSpec, channels: int) -> ResNet:
    """The network of the preset, freshly initialised from the seed."""
    make = {18: resnet18, 34: resnet34}[spec.preset.model.depth]
    return make(channels=channels, width=spec.preset.model.width, rng=spec.rng(_INITIAL))


_INITIAL = 1
