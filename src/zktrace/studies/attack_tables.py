"""Tables of the study of attacks, drawn from saved rows, with the paper's cells beside them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from zktrace.studies.cells import DATASETS, column_names, framed, named, papers
from zktrace.studies.identity_cells import spread
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCell:
    """What the paper has for one attack: a family, and those of its parameters that it tells."""

    source: str
    family: str
    parameters: Mapping[str, Any]
    values: tuple[str, ...]

    @property
    def means(self) -> tuple[float, ...]:
        """The values without their deviations."""
        return tuple(float(each.split(" ")[0]) for each in self.values)

    def about(self, trial: Mapping[str, Any]) -> bool:
        """Whether a trial is of this attack."""
        given = trial["parameters"]
        return self.family == trial["family"] and all(
            given.get(key) == each for key, each in self.parameters.items()
        )


def _attacked(family: str, *values: str, **parameters: Any) -> PaperCell:  # noqa: ANN401
    """Attribution, agreement with one's own codeword, accuracy in percent: over ten seeds."""
    return PaperCell(source="tab:attacks", family=family, parameters=parameters, values=values)


_CLEAN, _ALL, _NO_NORM = ".98 ± .04", "1.00 ± .00", {"epsilon": 0.1}
_LATE: Final = ["layer3", "layer4"]
PAPER_ATTACKS: Final[Mapping[str, tuple[PaperCell, ...]]] = {
    "gnss": (
        _attacked("none", _CLEAN, ".96 ± .02", "93.4 ± 1.0"),
        _attacked("structured", _CLEAN, ".95 ± .02", "31.2 ± 2.8", share=0.5),
        _attacked("noise", _CLEAN, ".78 ± .01", "26.7 ± 1.9", sigma=2.0),
        _attacked("quantise", _CLEAN, ".93 ± .02", "29.4 ± 5.0", bits=2),
        _attacked("pgd", _CLEAN, ".95 ± .02", "82.4 ± 9.1", **_NO_NORM),
        _attacked("reset", ".63 ± .23", ".59 ± .02", "41.9 ± 4.6", stages=_LATE),
        _attacked("finetune", _CLEAN, ".96 ± .02", "82.2 ± 8.4", episodes=100),
        _attacked("distill", ".15 ± .11", ".50 ± .01", "80.4 ± 10.8", epochs=80),
    ),
    "cifar10": (
        _attacked("none", _ALL, ".94 ± .01", "84.9 ± 0.3"),
        _attacked("structured", _ALL, ".94 ± .01", "52.0 ± 3.6", share=0.5),
        _attacked("noise", _ALL, ".76 ± .01", "26.0 ± 0.8", sigma=2.0),
        _attacked("quantise", _ALL, ".92 ± .01", "29.4 ± 5.4", bits=2),
        _attacked("pgd", _ALL, ".94 ± .01", "80.4 ± 0.8", **_NO_NORM),
        _attacked("reset", ".48 ± .17", ".56 ± .02", "26.3 ± 2.2", stages=_LATE),
        _attacked("finetune", _ALL, ".94 ± .01", "79.1 ± 0.7", episodes=100),
        _attacked("distill", ".15 ± .08", ".51 ± .01", "80.6 ± 1.9", epochs=80),
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
Groups = dict[tuple[str, str], list[Row]]  # rows by dataset and attack


def attacks_table(rows: Iterable[Row]) -> str:
    """By dataset and attack: what is left of everybody's codeword in the shared model."""
    lines = []
    for (dataset, title), some in grouped(rows, "identity").items():
        paper = _values(PAPER_ATTACKS[papers(dataset)], some[0]) or ("-",) * 3
        attribution, own, others = (
            [float(row.outcome["marks"][key]) for row in some]
            for key in ("attribution", "self_agreement", "cross_talk")
        )
        bits = sum(row.outcome["flips"]["bits"] for row in some)
        sure, lost = (sum(row.outcome["flips"][key] for row in some) for key in ("certain", "flipped"))
        stations = sum(row.outcome["stations"] for row in some)
        lines.append(
            (
                DATASETS[dataset],
                title,
                _seeds(some),
                f"{spread(attribution, 2)} ({paper[0]})",
                f"{spread(own, 2)} ({paper[1]})",
                f"{mean(others):.2f}",
                f"{mean(row.outcome['presence'] for row in some):.2f}",
                f"{sum(row.outcome['marks']['within_radius'] for row in some)}/{stations}",
                f"{sum(row.outcome['promised'] for row in some)}/{stations}",
                f"{100 * lost / bits:.1f} % (at most {100 * (bits - sure) / bits:.1f} %)",
                f"{spread(accuracies(some), 1)} % ({paper[2]})",
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
    informed, paper = grouped(rows, "informed"), grouped(rows, "paper")
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
                f"{mean(accuracies(measured)):.1f} % ({before:.1f} %)",
                *(_values(PAPER_CARRIERS, measured[0]) or ("-",)),
            )
        )
    head = (
        "data",
        "attack",
        "seeds",
        *(f"{name} (score)" for name in names),
        "paper's profile (score)",
        "framed",
        "accuracy (copy)",
        "the paper's own",
    )
    return markdown(head, lines)


def grouped(rows: Iterable[Row], target: str) -> Groups:
    """In the order of datasets and families, within one as rows came."""
    found = defaultdict[tuple[str, str], list[Row]](list)
    for row in rows:
        if row.trial["study"] == "attacks" and row.trial["target"] == target:
            found[row.trial["dataset"], title_of(row.trial)].append(row)
    order, families = list(DATASETS), list(_FAMILIES)

    def place(key: tuple[str, str]) -> tuple[int, int]:
        return order.index(key[0]), families.index(found[key][0].trial["family"])

    return {key: found[key] for key in sorted(found, key=place)}


def title_of(trial: Mapping[str, Any]) -> str:
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
    return str(len({row.trial["seed"] for row in rows}))


def accuracies(rows: Iterable[Row]) -> list[float]:
    """In percent."""
    return [100 * float(row.outcome["accuracy"]) for row in rows]
