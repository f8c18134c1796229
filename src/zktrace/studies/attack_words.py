"""What tables of attacks say, in sentences made from the same rows."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any, Final

from zktrace.studies.attack_tables import PAPER_ATTACKS, accuracies, grouped, title_of
from zktrace.studies.cells import DATASETS, column_names, framed, papers
from zktrace.studies.identity_figures import attacked
from zktrace.studies.identity_paper import BITS
from zktrace.studies.rows import Row

_NEAR: Final = 0.1  # of attribution
_POINTS: Final = 10.0  # of accuracy
_TWICE: Final = "the paper's PGD tells no norm, so each of ours stands beside it"
_WHY: Final[Mapping[str, str]] = {
    "pgd": "PGD in the norm l-infinity flips our identity words because directions and codewords are public "
    "and our objective takes the weakest bits of all stations; the paper's objective is not told.",
    "noise": "Noise is counted in deviations of all scales. In the paper these are mostly mark (marks spread "
    "the scales 6.7 to 7.1 times), here mostly the network's own, which lie closer to their layers' means: "
    "so the same noise moves the network less and the mark more.",
    "reset": "After a reset own codewords agree about as in the paper, but words are shorter here, and fewer "
    "bits tell stations apart.",
    "distill": "A student of the shared model is at chance here and in the paper.",
}


def attacks_words(rows: Sequence[Row]) -> str:
    """Attacks of the paper's table: how often attribution comes out as there, and why not."""
    told, apart = [], dict[str, None]()
    for data in DATASETS:
        differs, less, count, norms = list[str](), list[str](), 0, 0
        for cell in PAPER_ATTACKS[papers(data)]:
            groups = list(attacked(rows, cell, data).values())
            norms += cell.family == "pgd" and len(groups) > 1
            for some in groups:
                count += 1
                ours, (paper, _, kept) = _attribution(some), cell.means
                name = title_of(some[0].trial)
                if abs(ours - paper) > _NEAR:
                    differs.append(f"{name}: {ours:.2f} (paper {paper:.2f})")
                    if cell.family != "reset" or _bits(some[0]) < BITS:
                        apart[cell.family] = None
                accuracy = mean(accuracies(some))
                if cell.family in ("noise", "quantise") and accuracy > kept + _POINTS:
                    less.append(f"{accuracy:.1f} % after {name} (paper {kept:.1f} %)")
                    apart["noise"] = None
        if count:
            but = f"; apart: {'; '.join(differs)}" if differs else ""
            twice = f" ({_TWICE})" if norms else ""
            told.append(
                f"{DATASETS[data]}: {count - len(differs)} of {count} attacks of the paper's table leave "
                f"attribution within {_NEAR} of the paper's{twice}{but}."
            )
            told += [f"Accuracy stays higher: {', '.join(less)}."] if less else []
    return " ".join([*told, *(_WHY[each] for each in _WHY if each in apart)])


def _bits(row: Row) -> int:
    """Of a codeword; as many as the paper's, where a row does not say."""
    return int(row.trial.get("preset", {}).get("marks", {}).get("bits", BITS))


def _attribution(rows: Iterable[Row]) -> float:
    return mean(float(row.outcome["marks"]["attribution"]) for row in rows)


def attacks_carriers_words(rows: Sequence[Row]) -> str:
    """Copies under attack: who is named by each carrier, after what nobody is, and who is framed."""
    told, every = [], list[Row]()
    for target, words in (("informed", "our profile"), ("paper", "the paper's profile")):
        groups = grouped(rows, target)
        some = [row for found in groups.values() for row in found]
        every += some
        if not some:
            continue
        each = [f"{name} {_named(some, name)}" for name in column_names(some)]
        lost = [
            f"{title} on {DATASETS[data]} ({_named(found, 'all')})"
            for (data, title), found in groups.items()
            if not all(map(_owner, found))
        ]
        but = f"; not always after {', '.join(lost)}" if lost else ""
        told.append(
            f"In {words} the owner of an attacked copy, and nobody else, is named by {', '.join(each)}{but}."
        )
    if not told:
        return "No rows tell of this yet."
    paper = "Paper, after 80 epochs of feature matching: weight 0/10, feature 10/10."
    return " ".join([*told, f"An innocent is named in {framed(every)} investigations.", paper])


def _owner(row: Row, name: str = "all") -> bool:
    found: Mapping[str, Any] = row.outcome["columns"].get(name, {})
    return bool(found.get("named")) and not found["framed"]


def _named(rows: Iterable[Row], name: str) -> str:
    read = [row for row in rows if name in row.outcome["columns"]]
    return f"{sum(_owner(row, name) for row in read)}/{len(read)}"
