"""Settings of a whole run as plain TOML; some come with the package (`NAMES`).

A user copies one, edits it and names the file, with every key written out; or writes `base = "study"` above
the few keys that differ. The base is a name, or a TOML file beside this one. A key that is missing, unknown,
of another type or out of range is an error of one line that names the key and the file. Needs no torch.
"""

import dataclasses
import math
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from zktrace.errors import InputError, MalformedFile, UnknownParameters
from zktrace.learning.aggregation import RULES
from zktrace.learning.configs import EpisodeShape, EpisodicConfig, PretrainConfig, require
from zktrace.primitives.files import read_bounded
from zktrace.primitives.text import shown
from zktrace.primitives.toml import check_keys, check_whole, parse_toml, value_of

NAMES = ("smoke", "demo", "study", "half", "desk", "paper")
DATASETS = ("gnss", "cifar10", "recordings")
_LARGEST = 1 << 20
_DEEPEST = 16  # presets that stand on each other

Section = TypeVar("Section")


def _require_one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{key} = {value!r} must be one of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Which samples there are: `samples` to `receiver_shift` of simulated GNSS, the rest of recordings."""

    dataset: str
    samples: int
    imbalance: float  # largest class over smallest
    setting: str  # of the multipath: A or B
    domain_shift: bool  # a front end of its own for each station
    receiver_shift: bool = False  # a stress test: +3 dB of gain, and noise at 5 to 20 dB, another a station
    folder: str = ""  # of the recordings; in a file, from where the file is
    full_scale: float = 1.0  # of the recordings' components

    def __post_init__(self) -> None:
        _require_one_of("dataset", self.dataset, DATASETS)
        if self.dataset == "recordings" and not self.folder:
            raise InputError("folder is missing: where the recordings are")
        if self.receiver_shift and self.dataset != "gnss":
            raise InputError(f"receiver_shift is of simulated GNSS, not of {self.dataset}")
        require("full_scale", self.full_scale, 0 < self.full_scale < math.inf, "a positive number")
        _require_one_of("setting", self.setting, ("A", "B"))
        require("samples", self.samples, self.samples >= 1, "at least 1")
        require("imbalance", self.imbalance, 1 <= self.imbalance < math.inf, "at least 1")

    def as_dict(self) -> dict[str, Any]:
        """The section of the file, without what is left at a default that most files do not write."""
        left_out = {"receiver_shift": not self.receiver_shift}
        left_out |= dict.fromkeys(("folder", "full_scale"), self.dataset != "recordings")
        return {key: value for key, value in dataclasses.asdict(self).items() if not left_out.get(key)}


_OPTIONAL = ("receiver_shift", "folder", "full_scale")


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
        return dataclasses.asdict(self) | {"data": self.data.as_dict()}


def preset_text(name: str) -> str:
    """The TOML of a preset that comes with the package, comments included: something to copy and edit."""
    if name not in NAMES:
        raise UnknownParameters(f"no preset {name!r}; known: {', '.join(NAMES)}")
    return (resources.files("zktrace.learning") / "presets" / f"{name}.toml").read_text(encoding="utf-8")


def load_preset(source: str | Path) -> Preset:
    """A preset by its name, or a TOML file by its path (anything that ends in .toml, or any `Path`)."""
    return _loaded(source, ())


def parse_preset(text: str, *, source: str) -> Preset:
    """A preset from TOML that came alone: its base can be no file. `source` is what errors call it."""
    return _parsed(text, source, None, ())


def _loaded(source: str | Path, above: tuple[str, ...]) -> Preset:
    """A preset that those `above` stand on, the outermost first."""
    if isinstance(source, str) and not source.endswith(".toml"):
        return _parsed(preset_text(source), f"preset {source}", None, above)
    path = Path(source)
    own = os.path.realpath(path)
    if own in above or len(above) >= _DEEPEST:
        fault = "stands on itself" if own in above else f"more than {_DEEPEST} presets stand on each other"
        raise InputError(f"{path}: base: {fault}")
    try:
        text = read_bounded(path, limit=_LARGEST).decode()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"{path}: not UTF-8 text") from error
    return _parsed(text, str(path), path.parent, (*above, own))


def _parsed(text: str, source: str, folder: Path | None, above: tuple[str, ...]) -> Preset:
    """A preset whose file is in `folder`, if it has one."""
    tables = parse_toml(text, source)
    base = _base(source, tables.pop("base"), folder, above) if "base" in tables else None
    kinds = get_type_hints(Preset)
    check_keys(source, tables, kinds)
    if base is None:
        check_whole(source, tables, kinds, advice=_ADVICE)
    sections = {
        name: _section(source, name, kinds[name], table, None if base is None else getattr(base, name))
        for name, table in tables.items()
    }
    found = Preset(**sections) if base is None else dataclasses.replace(base, **sections)
    return _placed(found, folder) if "folder" in tables.get("data", {}) else found


def _base(source: str, value: object, folder: Path | None, above: tuple[str, ...]) -> Preset:
    """What a preset stands on."""
    named: str = value_of(source, "base", str, value)
    if folder is None and named.endswith(".toml"):
        raise InputError(f"{source}: base = {shown(named)} must be one of {', '.join(NAMES)} here")
    try:
        return _loaded(folder / named if folder is not None and named.endswith(".toml") else named, above)
    except UnknownParameters as error:
        raise InputError(f"{source}: base: {error}, or a file that ends in .toml") from error


def _placed(preset: Preset, folder: Path | None) -> Preset:
    """With the folder of the recordings as it is found from anywhere."""
    data = preset.data
    return dataclasses.replace(
        preset, data=dataclasses.replace(data, folder=os.path.abspath((folder or Path()) / data.folder))
    )


def _section(source: str, name: str, kind: type[Section], table: object, base: Section | None) -> Section:
    """One section: whole, or what differs from that of the base."""
    if not isinstance(table, dict):
        raise InputError(f"{source}: {name} must be a section, not {table!a:.40}")
    types = {key: each for key, each in get_type_hints(kind).items() if isinstance(each, type)}
    check_keys(source, table, types, under=f"{name}.")
    if base is None:
        check_whole(source, table, set(types) - set(_OPTIONAL), advice=_ADVICE, under=f"{name}.")
    values = {key: value_of(source, f"{name}.{key}", types[key], each) for key, each in table.items()}
    try:
        return kind(**values) if base is None else dataclasses.replace(base, **values)  # type: ignore[type-var]
    except InputError as error:
        raise InputError(f"{source}: {name}.{error}") from error


_ADVICE = f"a preset is whole (copy one of {', '.join(NAMES)} and edit it) or names a base"
