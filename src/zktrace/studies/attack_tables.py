"""Tables of the study of attacks, drawn from saved rows, with the paper's cells beside them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from zktrace.studies.cells import DATASETS, column_names, framed, named
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCell:
    """What the paper has for one attack: a family, and those of its parameters that it tells."""

    source: str
    family: str
    parameters: Mapping[str, Any]
    values: tuple[str, ...]

    def about(self, trial: Mapping[str, Any]) -> bool:
        """Whether a trial is of this attack."""
        given = trial["parameters"]
        return self.family == trial["family"] and all(
            given.get(key) == each for key, each in self.parameters.items()
        )


def _attacked(family: str, *values: str, **parameters: Any) -> PaperCell:  # noqa: ANN401
    """Attribution, agreement with one's own codeword, accuracy in percent: means over ten seeds."""
    return PaperCell(source="tab:attacks", family=family, parameters=parameters, values=values)


PAPER_ATTACKS: Final[Mapping[str, tuple[PaperCell, ...]]] = {
    "gnss": (
        _attacked("none", ".98", ".96", "93.4"),
        _attacked("structured", ".98", ".95", "31.2", share=0.5),
        _attacked("noise", ".98", ".78", "26.7", sigma=2.0),
        _attacked("quantise", ".98", ".93", "29.4", bits=2),
        _attacked("pgd", ".98", ".95", "82.4", epsilon=0.1),  # in which norm is not told
        _attacked("reset", ".63", ".59", "41.9", stages=["layer3", "layer4"]),
        _attacked("finetune", ".98", ".96", "82.2", episodes=100),
        _attacked("distill", ".15", ".50", "80.4", epochs=80),
    ),
    "cifar10": (
        _attacked("none", "1.00", ".94", "84.9"),
        _attacked("structured", "1.00", ".94", "52.0", share=0.5),
        _attacked("noise", "1.00", ".76", "26.0", sigma=2.0),
        _attacked("quantise", "1.00", ".92", "29.4", bits=2),
        _attacked("pgd", "1.00", ".94", "80.4", epsilon=0.1),
        _attacked("reset", ".48", ".56", "26.3", stages=["layer3", "layer4"]),
        _attacked("finetune", "1.00", ".94", "79.1", episodes=100),
        _attacked("distill", ".15", ".51", "80.6", epochs=80),
    ),
}
PAPER_CARRIERS: Final = (  # of each dataset alone
    PaperCell(
        source="tab:kd",
        family="distill",
        parameters={"epochs": 80},
        values=("weight 0/10, feature 10/10",),
    ),
)
_FAMILIES: Final = {
    "none": "nothing",
    "prune": "scales pruned",
    "structured": "channels pruned",
    "noise": "noise on scales",
    "quantise": "scales quantised",
    "prune-quantise": "scales pruned and quantised",
    "pgd": "PGD",
    "reset": "scales reset",
    "finetune": "trained on",
    "distill": "feature matching",
    "prune-all": "all matrices pruned",
    "noise-all": "noise on all matrices",
    "quantise-all": "all weights quantised",
}
_Group = dict[tuple[str, str], list[Row]]  # rows by dataset and attack


def attacks_table(rows: Iterable[Row]) -> str:
    """By dataset and attack: what is left of everybody's codeword in the shared model."""
    lines = []
    for (dataset, title), some in _grouped(rows, "identity").items():
        paper = _values(PAPER_ATTACKS.get(dataset, ()), some[0]) or ("-",) * 3
        marks = {key: mean(row.outcome["marks"][key] for row in some) for key in some[0].outcome["marks"]}
        bits = sum(row.outcome["flips"]["bits"] for row in some)
        sure, lost = (sum(row.outcome["flips"][key] for row in some) for key in ("certain", "flipped"))
        stations = sum(row.outcome["stations"] for row in some)
        lines.append(
            (
                DATASETS[dataset],
                title,
                _seeds(some),
                f"{marks['attribution']:.2f} ({paper[0]})",
                f"{marks['self_agreement']:.2f} ({paper[1]})",
                f"{marks['cross_talk']:.2f}",
                f"{mean(row.outcome['presence'] for row in some):.2f}",
                f"{sum(row.outcome['marks']['within_radius'] for row in some)}/{stations}",
                f"{sum(row.outcome['promised'] for row in some)}/{stations}",
                f"{100 * lost / bits:.1f} % (at most {100 * (bits - sure) / bits:.1f} %)",
                f"{_accuracy(some):.1f} % ({paper[2]})",
            )
        )
    head = (
        "data",
        "attack",
        "seeds",
        "attribution (paper)",
        "own codeword (paper)",
        "others",
        "presence",
        "proved by `thm:attr`",
        "promised by `lem:flip`",
        "flipped (by `lem:flip`)",
        "accuracy (paper)",
    )
    return markdown(head, lines)


def attacks_carriers_table(rows: Iterable[Row]) -> str:
    """By dataset and attack: runs in which the owner of a copy, and nobody else, was named, by carrier."""
    rows = list(rows)
    informed, paper = _grouped(rows, "informed"), _grouped(rows, "paper")
    names = column_names(row for some in informed.values() for row in some)
    lines = []
    for key in dict.fromkeys([*informed, *paper]):
        ours, theirs = informed.get(key, []), paper.get(key, [])
        measured = ours or theirs
        before = 100 * mean(row.outcome["accuracy_before"] for row in measured)
        lines.append(
            (
                DATASETS[key[0]],
                key[1],
                _seeds(measured),
                *(named(ours, name) for name in names),
                named(theirs, "all"),
                str(framed([*ours, *theirs])),
                f"{_accuracy(measured):.1f} % ({before:.1f} %)",
                *(_values(PAPER_CARRIERS, measured[0]) or ("-",)),
            )
        )
    head = (
        "data",
        "attack",
        "seeds",
        *names,
        "paper's profile",
        "framed",
        "accuracy (copy)",
        "the paper's own",
    )
    return markdown(head, lines)


def _grouped(rows: Iterable[Row], target: str) -> _Group:
    """In the order of datasets and families, within one as rows came."""
    found = defaultdict[tuple[str, str], list[Row]](list)
    for row in rows:
        if row.trial["study"] == "attacks" and row.trial["target"] == target:
            found[row.trial["dataset"], _title(row.trial)].append(row)
    order, families = list(DATASETS), list(_FAMILIES)

    def place(key: tuple[str, str]) -> tuple[int, int]:
        return order.index(key[0]), families.index(found[key][0].trial["family"])

    return {key: found[key] for key in sorted(found, key=place)}


def _title(trial: Mapping[str, Any]) -> str:
    """An attack for people."""
    given = [f"{name} {_shown(value)}" for name, value in trial["parameters"].items()]
    return ", ".join([_FAMILIES[trial["family"]], *given])


def _shown(value: float | str | list[str]) -> str:
    if isinstance(value, list):
        return "+".join(value)
    return value if isinstance(value, str) else f"{value:g}"


def _values(cells: Iterable[PaperCell], row: Row) -> tuple[str, ...]:
    """What the paper has for the attack of a row; nothing, where it has none."""
    return next((each.values for each in cells if each.about(row.trial)), ())


def _seeds(rows: list[Row]) -> str:
    return ", ".join(str(row.trial["seed"]) for row in rows)


def _accuracy(rows: list[Row]) -> float:
    return 100 * mean(float(row.outcome["accuracy"]) for row in rows)
