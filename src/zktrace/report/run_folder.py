"""The folder of a training run as values. Works on a run that is not finished, too."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from zktrace.credentials.keys import FILE_LIMIT, PublicKey
from zktrace.errors import Error, InputError, MalformedFile
from zktrace.learning.checkpoints import load_checkpoint
from zktrace.primitives.files import read_bounded
from zktrace.readouts.runs import MODEL, SPEC
from zktrace.registry.roster import Roster
from zktrace.tracing.attribution import read_attribution

_LIMIT: Final = 1 << 26  # bytes of a file of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A line of the log."""

    number: int  # from 0
    asked: tuple[int, ...]
    trained: tuple[int, ...]
    absent: tuple[tuple[int, str], ...]
    excluded: tuple[tuple[int, str], ...]
    loss: float | None
    penalty: float | None
    accuracy: float | None  # on training episodes
    attribution: float | None
    held_out: float | None  # on validation episodes; older logs have none


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLine:
    """An epoch of the pre-training."""

    number: int  # from 1
    loss: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """A run folder as values."""

    title: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any]  # empty: the run has not ended
    rounds: tuple[Round, ...]
    epochs: tuple[EpochLine, ...] = ()
    agreement: tuple[tuple[float, ...], ...] = ()  # stations x codewords
    stations: tuple[str, ...] = ()

    def part(self, name: str) -> Mapping[str, Any]:
        """A part of the preset; empty if the file has none."""
        return _part(self.spec, name)

    def count(self, part: str, key: str) -> int:
        """A number of things in the preset; 0 if the file does not say."""
        return _count(self.spec, part, key)


def read_run(folder: Path) -> TrainingReport:
    """What a run folder tells. Only `spec.json` must be there; everything else may be still to come."""
    if not (folder / SPEC).exists():
        raise InputError(f"{folder}: not the folder of a run of `zktrace train` (it has no {SPEC})")
    spec = _object(folder / SPEC)
    result = _object(folder / "result.json") if (folder / "result.json").exists() else {}
    saved = _object(folder / "agreement.json") if (folder / "agreement.json").exists() else {}
    try:
        matrix = tuple(tuple(float(value) for value in row) for row in saved.get("agreement", ()))
    except (TypeError, ValueError) as error:
        raise MalformedFile(f"{folder / 'agreement.json'}: not a matrix of numbers") from error
    clients = _count(spec, "federation", "clients")
    return TrainingReport(
        title=f"Training run {folder.resolve().name}",
        spec=spec,
        result=result,
        rounds=_log(folder / "log.jsonl"),
        epochs=_epochs(folder / "pretraining.safetensors"),
        agreement=matrix if {len(row) for row in matrix} == {len(matrix)} else (),
        stations=_names(spec, max(clients, len(matrix))),
    )


def with_agreement(run: TrainingReport, folder: Path) -> TrainingReport:
    """Runs of an earlier version kept no matrix; where model and keys are there, it is read from them."""
    paths = [folder / "stations" / f"{name}.pub" for name in run.stations]
    model, marks = folder / MODEL, run.part("marks")
    if run.agreement or not all(each.exists() for each in (model, *paths)) or "bits" not in marks:
        return run
    try:
        who = Roster(
            names=run.stations,
            keys=tuple(PublicKey.from_bytes(read_bounded(path, limit=FILE_LIMIT)) for path in paths),
            rows=tuple(int(each) for each in run.spec.get("rows", ())),
            bits=int(marks["bits"]),
        )
        found = read_attribution(model, who, raw=bool(marks.get("raw", True)))
    except (Error, TypeError, ValueError):
        return run  # the rest of the report is still worth having
    return replace(run, agreement=found.matrix)


def _names(spec: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """As the registry calls them, or numbered where the run had no registry."""
    known = spec.get("stations")
    if isinstance(known, list) and len(known) == count:
        return tuple(str(each) for each in known)
    return tuple(f"station{station:03d}" for station in range(count))


def _object(path: Path) -> dict[str, Any]:
    return _parsed(read_bounded(path, limit=_LIMIT), str(path))


def _parsed(data: bytes, source: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"{source}: not JSON") from error
    if not isinstance(found, dict):
        raise MalformedFile(f"{source}: not a JSON object")
    return found


def _log(path: Path) -> tuple[Round, ...]:
    if not path.exists():
        return ()
    lines = read_bounded(path, limit=_LIMIT).splitlines()
    return tuple(
        _round(_parsed(line, f"{path}, line {i + 1}"), f"{path}, line {i + 1}")
        for i, line in enumerate(lines)
    )


def _round(line: Mapping[str, Any], source: str) -> Round:
    try:
        return Round(
            number=int(line["round"]),
            asked=tuple(int(each) for each in line["asked"]),
            trained=tuple(int(each) for each in line["trained"]),
            absent=tuple((int(each), str(why)) for each, why in dict(line["absent"]).items()),
            excluded=tuple((int(each), str(why)) for each, why in dict(line["excluded"]).items()),
            loss=finite(line.get("loss")),
            penalty=finite(line.get("penalty")),
            accuracy=finite(line.get("accuracy")),
            attribution=finite(line.get("attribution")),
            held_out=finite(line.get("held_out")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedFile(f"{source}: not a round of a federation") from error


def _epochs(path: Path) -> tuple[EpochLine, ...]:
    """Pre-training keeps its reports in its checkpoint."""
    if not path.exists():
        return ()
    try:
        reports = load_checkpoint(path, kind="pre-training").facts["reports"]
        return tuple(
            EpochLine(
                number=int(each["epoch"]),
                loss=finite(each.get("loss")),
                accuracy=finite(each.get("accuracy")),
            )
            for each in reports
        )
    except (Error, KeyError, TypeError, ValueError, AttributeError):
        return ()  # a report is no place to fail over a curve


def finite(value: object) -> float | None:
    """A finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _count(spec: Mapping[str, Any], part: str, key: str) -> int:
    value = _part(spec, part).get(key)
    return value if isinstance(value, int) and 0 <= value <= 1 << 20 else 0


def _part(spec: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    preset = spec.get("preset")
    found = preset.get(part) if isinstance(preset, dict) else None
    return found if isinstance(found, dict) else {}
