"""Settings of a whole run as plain TOML: `smoke`, `demo`, `study`, `half`, `desk` and `paper` come with the package.

A user copies one, edits it and names the file. Every key is written out; one that is missing, unknown, of
another type or out of range is an error of one line that names the key and the file. Needs no torch.
"""

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from zktrace.errors import InputError, MalformedFile, UnknownParameters
from zktrace.learning.aggregation import RULES
from zktrace.learning.configs import EpisodeShape, EpisodicConfig, PretrainConfig, require
from zktrace.primitives.files import read_bounded
from zktrace.primitives.toml import check_keys, check_whole, parse_toml, value_of

NAMES = ("smoke", "demo", "study", "half", "desk", "paper")
DATASETS = ("gnss", "cifar10")
_LARGEST = 1 << 20

Section = TypeVar("Section")


def _require_one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{key} = {value!r} must be one of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Which samples there are. `imbalance`, `setting` and `domain_shift` concern simulated GNSS only."""

    dataset: str
    samples: int
    imbalance: float  # largest class over smallest
    setting: str  # of the multipath: A or B
    domain_shift: bool  # a front end of its own for each station

    def __post_init__(self) -> None:
        _require_one_of("dataset", self.dataset, DATASETS)
        _require_one_of("setting", self.setting, ("A", "B"))
        require("samples", self.samples, self.samples >= 1, "at least 1")
        require("imbalance", self.imbalance, 1 <= self.imbalance < math.inf, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """ResNet-`depth`, with `width` channels in the first stage."""

    depth: int
    width: int

    def __post_init__(self) -> None:
        require("depth", self.depth, self.depth in {18, 34}, "18 or 34")
        require("width", self.width, self.width >= 1, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationConfig:
    """Who trains together, for how long, and how their states become one."""

    clients: int
    rounds: int
    participation: float  # fraction of the clients in each round
    alpha: float  # concentration of the Dirichlet partition over labels
    aggregation: str

    def __post_init__(self) -> None:
        require("clients", self.clients, self.clients >= 1, "at least 1")
        require("rounds", self.rounds, self.rounds >= 1, "at least 1")
        require("participation", self.participation, 0 < self.participation <= 1, "above 0 and at most 1")
        require("alpha", self.alpha, 0 < self.alpha < math.inf, "a positive number")
        _require_one_of("aggregation", self.aggregation, RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkConfig:
    """Identity marks: values that are only carried here, for the rooms that know what they mean."""

    bits: int  # n, of a client's word
    lambda_wm: float  # weight of the mark's loss; 0: no marks
    mu: float  # target margin
    p_drop: float  # fraction of bits left out of a step
    raw: bool  # marks in the scales as they are (the paper), not less the mean of their layer
    push_margin: float  # given to every bit before a round's episodes; 0: the loss alone writes (the paper)

    def __post_init__(self) -> None:
        require("bits", self.bits, self.bits >= 1, "at least 1")
        require("lambda_wm", self.lambda_wm, 0 <= self.lambda_wm < math.inf, "a number of at least 0")
        require("mu", self.mu, 0 < self.mu < math.inf, "a positive number")
        require("p_drop", self.p_drop, 0 <= self.p_drop < 1, "at least 0 and below 1")
        require("push_margin", self.push_margin, 0 <= self.push_margin < math.inf, "a number of at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """Test episodes."""

    way: int
    shot: int
    query: int
    episodes: int

    def __post_init__(self) -> None:
        require("episodes", self.episodes, self.episodes >= 2, "at least 2")
        _ = self.shape

    @property
    def shape(self) -> EpisodeShape:
        """The shape of an episode."""
        return EpisodeShape(way=self.way, shot=self.shot, query=self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Everything a run needs beside its seed. One field a section of the file."""

    data: DataConfig
    model: ModelConfig
    pretraining: PretrainConfig
    episodes: EpisodicConfig
    federation: FederationConfig
    marks: MarkConfig
    evaluation: EvaluationConfig

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The content of the file, for a record of the run."""
        return dataclasses.asdict(self)


def preset_text(name: str) -> str:
    """The TOML of a preset that comes with the package, comments included: something to copy and edit."""
    if name not in NAMES:
        raise UnknownParameters(f"no preset {name!r}; known: {', '.join(NAMES)}")
    return (resources.files("zktrace.learning") / "presets" / f"{name}.toml").read_text(encoding="utf-8")


def load_preset(source: str | Path) -> Preset:
    """A preset by its name, or a TOML file by its path (anything that ends in .toml, or any `Path`)."""
    if isinstance(source, str) and not source.endswith(".toml"):
        return parse_preset(preset_text(source), source=f"preset {source}")
    path = Path(source)
    try:
        text = read_bounded(path, limit=_LARGEST).decode()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"{path}: not UTF-8 text") from error
    return parse_preset(text, source=str(path))


def parse_preset(text: str, *, source: str) -> Preset:
    """A preset from TOML. `source` is what errors call it."""
    tables = parse_toml(text, source)
    kinds = get_type_hints(Preset)
    _check_keys(source, "", tables, kinds)
    return Preset(**{name: _section(source, name, kind, tables[name]) for name, kind in kinds.items()})


def _section(source: str, name: str, kind: type[Section], table: object) -> Section:
    if not isinstance(table, dict):
        raise InputError(f"{source}: {name} must be a section, not {table!a:.40}")
    types = {key: each for key, each in get_type_hints(kind).items() if isinstance(each, type)}
    _check_keys(source, f"{name}.", table, types)
    values = {key: value_of(source, f"{name}.{key}", types[key], each) for key, each in table.items()}
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{source}: {name}.{error}") from error


def _check_keys(source: str, under: str, given: Collection[str], known: Collection[str]) -> None:
    check_keys(source, given, known, under=under)
    advice = f"a preset is whole: copy one of {', '.join(NAMES)} and edit it"
    check_whole(source, given, known, advice=advice, under=under)
