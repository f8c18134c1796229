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
        some = [row for row in rows if dataset_in(row.trial) == data]
        if some:
            title = "No data" if data is None else DATASETS[data]
            told.append(f"{title}: {'; '.join(_facts(some))}.")
    commits = sorted({str(row.origin.get("commit")) for row in rows})
    shown = ", ".join(commits[:3]) + (f" and {len(commits) - 3} more" if len(commits) > 3 else "")
    return " ".join([*told, f"{len(rows)} row{'s' * (len(rows) != 1)}, made at {shown}."])


def dataset_in(trial: Mapping[str, Any]) -> str | None:
    """The data of a trial, whichever way its study writes them; None of none that is known."""
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
    return [each for each in (*found, *_trained(trials)) if each] + _seeds(trials)


def _trained(trials: Iterable[Mapping[str, Any]]) -> list[str]:
    """How long copies, insiders and students were, where trials say it."""
    some = list(trials)
    copies = [each for each in some if each.get("profile") == "paper"]
    insiders = [each for each in some if each["study"] == "insiders" and each["episodes"]]
    students = [each["students"] for each in some if each.get("students")]
    return [
        _told("copies in the paper's profile of {} episodes", _given(_of(copies, "settings"), "episodes")),
        _told("insiders of {} episodes", _given(insiders, "episodes"))
        + _told(" on {} images", _given(insiders, "samples")),
        _told("students of {} epochs", _given(students, "epochs"))
        + _told(" on {} images", [each["samples"] for each in students if each["samples"]]),
    ]


def _seeds(trials: Iterable[Mapping[str, Any]]) -> list[str]:
    """All of them, by study where studies have different ones."""
    found: dict[str, set[int]] = {}
    for each in trials:
        if isinstance(each.get("seed"), int):
            found.setdefault(each["study"], set()).add(each["seed"])
    different = {frozenset(some) for some in found.values()}
    told = {study: f"{len(some)} seed{'s' if len(some) != 1 else ''}" for study, some in found.items()}
    listed = {study: f"{told[study]} ({', '.join(map(str, sorted(some)))})" for study, some in found.items()}
    if len(different) == 1:
        return [next(iter(listed.values()))]
    return [f"{words} of {study}" for study, words in listed.items()]


def _of(trials: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [each[name] for each in trials if isinstance(each.get(name), dict)]


def _given(trials: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in trials if name in each]


def _told(form: str, values: Iterable[float]) -> str:
    different = sorted(set(values))
    return form.format(" or ".join(f"{each:,}" for each in different)) if different else ""
