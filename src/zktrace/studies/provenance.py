"""What rows were made with: networks, rounds, epochs, images and seeds, in one line for people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zktrace.studies.cells import DATASETS
from zktrace.studies.rows import Row


def provenance(rows: Sequence[Row]) -> str:
    """A sentence for each set of data, and one on who made the rows; empty where there are none."""
    if not rows:
        return ""
    told = []
    for data in [*DATASETS, None]:
        some = [row for row in rows if _dataset(row.trial) == data]
        if some:
            title = "No data" if data is None else DATASETS[data]
            told.append(f"{title}: {'; '.join(_facts(some))}.")
    commits = sorted({str(row.origin.get("commit")) for row in rows})
    shown = ", ".join(commits[:3]) + (f" and {len(commits) - 3} more" if len(commits) > 3 else "")
    return " ".join([*told, f"{len(rows)} rows, made at {shown}."])


def _dataset(trial: Mapping[str, Any]) -> str | None:
    given = trial.get("dataset") or trial.get("preset", {}).get("data", {}).get("dataset")
    return given if given in DATASETS else None


def _facts(rows: Iterable[Row]) -> list[str]:
    """What the trials say of themselves; of several values, all."""
    trials = [row.trial for row in rows]
    presets = [each["preset"] for each in trials if isinstance(each.get("preset"), dict)]
    found = [
        _told("width {}", [*(each["model"]["width"] for each in presets), *_given(trials, "width")]),
        _told(
            "{} stations", [each["federation"]["clients"] for each in presets] or _given(trials, "stations")
        ),
        _told("{} rounds", [each["federation"]["rounds"] for each in presets]),
        _told("{} epochs of pre-training", [each["pretraining"]["epochs"] for each in presets]),
        _told(
            "{} images an epoch",
            [each["pretraining"]["samples"] or each["data"]["samples"] for each in presets],
        ),
    ]
    seeds = sorted({each["seed"] for each in trials if isinstance(each.get("seed"), int)})
    few = f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''} ({', '.join(map(str, seeds))})"
    return [each for each in found if each] + ([few] if seeds else [])


def _given(trials: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in trials if name in each]


def _told(form: str, values: Iterable[float]) -> str:
    different = sorted(set(values))
    return form.format(" or ".join(f"{each:,}" for each in different)) if different else ""
