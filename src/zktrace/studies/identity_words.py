"""What the tables of identity marks come to, in a few sentences that are computed from the same rows."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from zktrace.studies.cells import papers
from zktrace.studies.equivalence import LEVEL, difference, equivalence
from zktrace.studies.guard_tables import MARGINS
from zktrace.studies.identity_cells import (
    WITHOUT,
    Value,
    able,
    accuracy,
    mark,
    marked,
    of_trained,
    pairs,
    values,
)
from zktrace.studies.identity_paper import (
    ATTRIBUTION,
    BITS,
    BROADENED,
    FEATURES,
    NONIID,
    SEEDS,
    STRESSORS,
    SURVIVAL,
    UTILITY,
    Printed,
)
from zktrace.studies.identity_tables import (
    ATTRIBUTED,
    FEATURE_METRICS,
    OTHERS,
    OWN,
    by_skew,
    by_stations,
    measured_pairs,
)
from zktrace.studies.rows import Row

NOTHING: Final = "There are no rows for this table yet."
SPOKEN: Final = {"gnss": "simulated GNSS", "cifar10": "CIFAR-10", "recordings": "recorded GNSS"}
_SMALLER: Final = (  # where presets differ from the paper
    ("model", "width", "networks have width", 64),
    ("federation", "rounds", "rounds are", 100),
)
_CLOSE: Final = 1.0  # points that count as the same, where the paper gives no deviation

_Groups = Mapping[str, Sequence[Row]]  # by dataset


def attribution_words(rows: Iterable[Row]) -> str:
    """Of `attribution_table`."""
    found = _as_they_are(rows)
    if not found:
        return NOTHING
    paper = {dataset: ATTRIBUTION[papers(dataset)] for dataset in found}
    below = [
        dataset for dataset, some in found.items() if _below(some, ATTRIBUTED, paper[dataset]["attribution"])
    ]
    verdict = "; as in the paper"
    if below:
        verdict = f"; less than in the paper on {_list([SPOKEN[each] for each in below])}"
        verdict += f", where {_means({each: found[each] for each in below}, able, 1)} stations ever trained"
    return " ".join(
        (
            f"Attribution is {_each(found, ATTRIBUTED, _of(paper, 'attribution'), 1, ' %')}{verdict}.",
            f"Stations' bits agree with their own codeword in {_each(found, OWN, _of(paper, 'own'), 2)}, "
            f"with others' in {_means(found, OTHERS, 2)} (paper 0.50).",
            f"Accuracy is {_each(found, accuracy, _of(paper, 'accuracy'), 1, ' %')}{_why(found)}; "
            f"{_seeds(found.values())}.",
        )
    )


def survival_words(rows: Iterable[Row]) -> str:
    """Of `survival_table`."""
    found = by_stations(rows)
    if not found:
        return NOTHING
    falls, ends = [], []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        counts = [count for data, count in found if data == dataset]
        few, many = counts[0], counts[-1]
        last, printed = found[dataset, many], SURVIVAL.get((papers(dataset), many), {})
        first = f"{_mean(found[dataset, few], OWN, 2)} at {few} stations and " if few < many else ""
        falls.append(
            f"on {SPOKEN[dataset]} {first}{_mean(last, OWN, 2)} at {many} stations"
            f"{_paper(printed.get('own'), 2)}"
        )
        ends.append(
            f"{_mean(last, ATTRIBUTED, 1, ' %')} on {SPOKEN[dataset]} with {many} stations"
            f"{_paper(printed.get('attribution'), 1, ' %')}, of whom {_mean(last, able, 1)} trained; "
            f"of these {_mean(last, of_trained, 1, ' %')}"
        )
    predicted, above = mark("predicted"), 0
    for some in found.values():
        above += fmean(values(some, OWN)) > fmean(values(some, predicted))
    return (
        f"The share of own bits is {'; '.join(falls)}. It lies above the diagnostic p-hat in {above} of "
        f"{len(found)} cells (paper: in all). Attribution is {', and '.join(ends)}; {_seeds(found.values())}."
        f"{_shorter(found.values())}"
    )


def _shorter(groups: Iterable[Sequence[Row]]) -> str:
    """Where codewords are shorter than the paper's, what follows from it."""
    bits = {row.trial["preset"]["marks"]["bits"] for some in groups for row in some}
    if min(bits) >= BITS:
        return ""
    return (
        f" Codewords have {_list([str(each) for each in sorted(bits)])} bits here and {BITS} in the paper: "
        "with the same load, fewer bits tell stations apart, so many of them are mixed up sooner."
    )


def noniid_words(rows: Iterable[Row]) -> str:
    """Of `noniid_table`."""
    found = by_skew(rows)
    if not found:
        return NOTHING
    skewed, absent, trained = [], [], []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in found):
        own = {key[1:]: some for key, some in found.items() if key[0] == dataset}
        present = [alpha for alpha, share in own if share == 1]
        if present:
            alpha = min(present)
            some, printed = own[alpha, 1.0], NONIID.get((papers(dataset), alpha, 1.0), (None, None))[0]
            skewed.append(
                f"with alpha = {alpha:g} on {SPOKEN[dataset]} {_mean(some, ATTRIBUTED, 1, ' %')}"
                f"{_paper(printed, 1, ' %')}, where {_mean(some, able, 1)} stations trained"
            )
        alpha, share = min(own, key=lambda key: key[1])
        if share < 1:
            printed = NONIID.get((papers(dataset), alpha, share), (None, None))[0]
            absent.append(
                f"{_mean(own[alpha, share], ATTRIBUTED, 1, ' %')} on {SPOKEN[dataset]}"
                f"{_paper(printed, 1, ' %')} with q = {share:g}"
            )
        trained += [fmean(each) for each in (values(some, of_trained) for some in own.values()) if each]
    least = "not measured"
    if trained:
        least = "100 %" if min(trained) == 100 else f"at least {min(trained):.1f} %"
    parts = [f"Attribution over the whole roster is {'; '.join(skewed)}."] if skewed else []
    parts.append(f"Of the stations that trained at all it is {least} in every setting (paper 100 %).")
    parts += [f"With stations absent it is {_list(absent)}."] if absent else []
    parts[-1] = f"{parts[-1][:-1]}; {_seeds(found.values())}."
    return " ".join(parts)


def featurespace_words(rows: Iterable[Row]) -> str:
    """Of `featurespace_table`."""
    sentences, smaller = [], []
    found = pairs(rows)
    for dataset, both in found.items():
        changes = {name: measured_pairs(both, value) for name, (_, value, _) in FEATURE_METRICS.items()}
        if not changes["silhouette"]:
            continue
        told = [
            f"{words} by {_change(changes[name], dataset, name)}"
            for name, words in (("silhouette", "the silhouette"), ("nearest", "nearest neighbours"))
        ]
        without, with_marks = (fmean(each[side] for each in changes["gamma"]) for side in (0, 1))
        smaller.append(with_marks < BROADENED[0])
        sentences.append(
            f"On {SPOKEN[dataset]} marks change {_list(told)}; scales spread {with_marks:.1f} times as wide "
            f"as before (paper {BROADENED[0]} to {BROADENED[1]}), {without:.1f} times without marks."
        )
    if not sentences:
        return NOTHING
    if all(smaller):
        sentences.append("Marks move the scales less than in the paper, and can move features less.")
    sides = [[with_marks for _, with_marks in both] for both in found.values()]
    return " ".join(sentences)[:-1] + f"; {_seeds(sides)}."


def _change(both: Sequence[tuple[float, float]], dataset: str, name: str) -> str:
    """A mean difference, its test, and the paper's."""
    differences = [after - before for before, after in both]
    shown = f"{fmean(differences):+.3f}"
    before, after = FEATURES[papers(dataset), name]
    theirs = f"paper {after.mean - before.mean:+.3f}" if before and after else "paper: not told"
    if len(differences) < 2:
        return f"{shown} ({theirs})"
    chance = difference(differences)
    kind = "significant" if chance <= LEVEL else "not significant"
    return f"{shown} ({kind}, p = {chance:.2g}; {theirs})"


def utility_words(rows: Iterable[Row]) -> str:
    """Of `utility_table`."""
    sentences = []
    for dataset, both in pairs(rows).items():
        lost, _, _, chance = UTILITY[papers(dataset)]
        differences = [accuracy(with_marks) - accuracy(without) for without, with_marks in both]
        theirs = f"paper {lost:+.2f} points, p = {chance:g}"
        if len(differences) < 2:
            sentences.append(
                f"On {SPOKEN[dataset]} one pair differs by {differences[0]:+.2f} points ({theirs}): no test."
            )
            continue
        test = equivalence(differences, MARGINS[dataset])
        shown = "are as good as" if test.shown else "are not shown to be as good as"
        width = "" if test.shown else f", for the interval reaches from {test.low:+.2f} to {test.high:+.2f}"
        sentences.append(
            f"On {SPOKEN[dataset]} federations with marks {shown} those without, within {test.margin:g} "
            f"points: {test.mean:+.2f} over {len(both)} pairs, p = {test.chance:.2g} ({theirs}){width}."
        )
    return " ".join(sentences) or NOTHING


def stressors_words(rows: Iterable[Row]) -> str:
    """Of `stressors_table`."""
    found, sentences = marked(rows), []
    for variant, words in (("median", "With the coordinate-wise median"), ("shift", "Under receiver shift")):
        some = {dataset: each for (dataset, name), each in found.items() if name == variant}
        if not some:
            continue
        paper = {dataset: STRESSORS.get((papers(dataset), variant), {}) for dataset in some}
        plain = {dataset: found[dataset, WITHOUT] for dataset in some if (dataset, WITHOUT) in found}
        calm = f", without stress {_means(plain, accuracy, 1, ' %')}" if plain else ""
        sentences.append(
            f"{words} attribution is {_each(some, ATTRIBUTED, _of(paper, 'attribution'), 1, ' %')}; accuracy "
            f"is {_each(some, accuracy, _of(paper, 'accuracy'), 1, ' %')}{calm}; {_seeds(some.values())}."
        )
    return " ".join(sentences) or NOTHING


# ── parts of sentences ─────────────────────────────────────────────────────────────────────────────────────


def _as_they_are(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return {dataset: some for (dataset, variant), some in marked(rows).items() if variant == WITHOUT}


def _of(paper: Mapping[str, Mapping[str, Printed]], name: str) -> dict[str, Printed | None]:
    return {dataset: each.get(name) for dataset, each in paper.items()}


def _below(rows: Sequence[Row], value: Value, paper: Printed) -> bool:
    """Whether ours is less than the paper's by more than its deviation, or a point."""
    return fmean(values(rows, value)) < paper.mean - max(_CLOSE, paper.deviation or 0.0)


def _each(
    found: _Groups, value: Value, paper: Mapping[str, Printed | None], digits: int, unit: str = ""
) -> str:
    """A mean a dataset, each with the paper's."""
    return _list(
        [
            f"{_mean(some, value, digits, unit)} on {SPOKEN[dataset]}{_paper(paper[dataset], digits, unit)}"
            for dataset, some in found.items()
        ]
    )


def _means(found: _Groups, value: Value, digits: int, unit: str = "") -> str:
    return _list([_mean(some, value, digits, unit) for some in found.values()])


def _mean(rows: Sequence[Row], value: Value, digits: int, unit: str = "") -> str:
    found = values(rows, value)
    return f"{fmean(found):.{digits}f}{unit}" if found else "an unknown share"


def _paper(paper: Printed | None, digits: int, unit: str = "") -> str:
    return "" if paper is None else f" (paper {paper.mean:.{digits}f}{unit})"


def _why(found: _Groups) -> str:
    """What rows know of why accuracy is another than the paper's."""
    reasons = []
    for section, name, words, theirs in _SMALLER:
        ours = sorted({row.trial["preset"][section][name] for some in found.values() for row in some})
        if ours != [theirs]:
            reasons.append(f"{words} {_list(list(map(str, ours)))} (paper {theirs})")
    if "gnss" in found:
        reasons.append("GNSS is simulated, which the paper's is not")
    return f": {_list(reasons)}" if reasons else ""


def _seeds(groups: Iterable[Sequence[Row]]) -> str:
    """How many a cell rests on; few are said to be few."""
    counts = sorted({len({row.trial["seed"] for row in some}) for some in groups})
    told = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else _number(counts[0])
    if counts[0] < SEEDS:
        return f"{told} (few: the paper has {SEEDS})"
    return f"{told}, as in the paper" if counts == [SEEDS] else f"{told} (paper {SEEDS})"


def _number(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _list(parts: Sequence[str]) -> str:
    """One, two, or more of them."""
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"
