"""Tables of suspects in disguise and of students, beside what theorems had promised of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import mean, median
from typing import Any, Final

from zktrace.studies.attack_tables import title_of
from zktrace.studies.cells import DATASETS, column_names, framed, named, taught
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

_CHANCE: Final = 0.5  # of a bit, without a mark
_ATTACKERS = {
    "none": ("the copy itself", "-"),
    "rescale": ("channels rescaled", "-"),
    "permute": ("channels permuted", "-"),
    "rewrite": ("both, features too", "-"),
    "isometry": ("feature isometry", "0/20"),
    "features": ("feature matching", "20/20"),
    "deeper": ("feature matching, 34 layers", "19/20"),
    "logits": ("soft labels only", "0/20"),
    "headless": ("soft labels only, without a head", "-"),
    "distances": ("soft labels only, as distances", "-"),
    "pair-logits": ("average of two, soft labels only", "-"),
    "top1": ("best class only", "-"),
    "top1-service": ("best class only, asked for classes", "-"),
    "service": ("the copy behind a head of its own, asked for classes", "-"),
    "labels": ("no teacher: true labels", "-"),
    "foreign": ("copy of another federation", "-"),
}
_PAPERS_PROFILE = "paper's profile, weight and feature together"
_PAPERS_OWN = "the paper's own: feature, threshold alone, both data sets"


def disguise_table(rows: Iterable[Row]) -> str:
    """By dataset and attacker: runs in which somebody guilty, and nobody else, was named, by carrier."""
    groups: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.trial["study"] == "disguise":
            key = row.trial["dataset"], row.trial["attacker"], taught(row.trial.get("students"))
            groups[key][row.trial["profile"]].append(row)
    lines, columns = [], column_names(row for ways in groups.values() for row in ways["informed"])
    for dataset, title in DATASETS.items():
        for attacker, (words, paper) in _ATTACKERS.items():
            ways = sorted(way for data, who, way in groups if (data, who) == (dataset, attacker))
            for way in ways:
                found = groups[dataset, attacker, way]
                if found["informed"]:
                    lines.append((title, words + way, *_disguise_cells(found, columns), paper))
    head = ("data", "attacker", *columns, _PAPERS_PROFILE, "framed", "accuracy (copy)", _PAPERS_OWN)
    return markdown(head, lines)


def _disguise_cells(found: dict[str, list[Row]], columns: tuple[str, ...]) -> list[str]:
    cells = [named(found["informed"], column) for column in columns] + [named(found["paper"], "all")]
    every = [row for rows in found.values() for row in rows]
    accuracy, copy = (_percent(found["informed"], name) for name in ("accuracy", "copy_accuracy"))
    return [*cells, str(framed(every)), f"{accuracy:.1f} % ({copy:.1f} %)"]


def _percent(rows: list[Row], name: str) -> float:
    return 100 * mean(float(row.outcome[name]) for row in rows)


def students(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Students of features whose rows say what the theorems promised, by data, attacker and profile."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.trial["study"] in ("disguise", "attacks") and "stability" in row.outcome:
            groups[row.trial["dataset"], *_called(row.trial)].append(row)
    return dict(sorted(groups.items()))


def _called(trial: Mapping[str, Any]) -> tuple[str, str]:
    """An attacker for people, and the profile of the copy."""
    if trial["study"] == "attacks":
        return title_of(trial), trial["target"]
    return _ATTACKERS[trial["attacker"]][0] + taught(trial["students"]), trial["profile"]


def stability_table(rows: Iterable[Row]) -> str:
    """Runs in which the condition of `thm:score-stability` holds, by three counts of changed bits.

    Rows that have it say how many bits are not the row's, beside the bound of `prop:kd-robust`.
    """
    groups = students(rows)
    told = any("differing" in each for some in groups.values() for each in _promised(some))
    lines = []
    for (dataset, words, profile), some in groups.items():
        found = _promised(some)
        counts = [
            f"{sum(each[way]['holds'] for each in found)}/{len(found)} "
            f"({median(each[way]['changed'] for each in found):.0f})"
            for way in ("budget", "residuals", "projected")
        ]
        middle = [median(each[name] for each in found) for name in ("margin", "residual", "flipped")]
        scores = [median(each[name] for each in found) for name in ("score", "student_score", "threshold")]
        lines.append(
            (
                DATASETS[dataset],
                words,
                profile,
                f"{middle[0]:.2f}",
                f"{middle[1]:.2f}",
                *counts,
                f"{middle[2]:.0f}",
                *([_differing(found)] if told else []),
                " → ".join(f"{each:.0f}" for each in scores[:2]),
                f"{scores[2]:.0f}",
                f"{sum(each['student_beyond'] for each in found)}/{len(found)}",
            )
        )
    head = (
        *("data", "attacker", "profile", "margin", "residual"),
        *("holds by `eq:score-k` (k)", "by residuals (k)", "by projections (k)", "flipped"),
        *(["differing (bound of `prop:kd-robust`)"] if told else []),
        *("score", "threshold", "student beyond"),
    )
    return markdown(head, lines)


def _promised(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [row.outcome["stability"] for row in rows]


def _differing(found: Iterable[Mapping[str, Any]]) -> str:
    """The part of the bits that is not the row's, and the bound: medians."""
    known = [each["differing"] for each in found if "differing" in each]
    if not known:
        return "-"
    ours, bound = (median(each[name] for each in known) for name in ("found", "bound"))
    return f"{ours:.2f} ({bound:.2f})"


def stability_words(rows: Iterable[Row]) -> str:
    """Whether the theorems promised what happened."""
    found = [each for some in students(rows).values() for each in _promised(some)]
    if not found:
        return "No rows tell of this yet."
    held, beyond = (
        sum(any(each[way]["holds"] for way in ("budget", "residuals")) for each in found),
        sum(each["student_beyond"] for each in found),
    )
    known = [each["differing"] for each in found if "differing" in each]
    useful = sum(each["bound"] < _CHANCE for each in known)
    broken = sum(each["found"] > each["bound"] for each in known)
    bound = (
        f" The bound of `prop:kd-robust` on bits that are not the row's is below one half, where it says "
        f"something, for {useful} of {len(known)}, and exceeded by {broken}."
    )
    return (
        f"Of {len(found)} models that were trained on features of a copy, {beyond} keep a score beyond the "
        f"candidate threshold; `thm:score-stability` had promised it of {held}.{bound if known else ''} Both "
        "are sufficient and not necessary: residuals are large beside margins here."
    )
