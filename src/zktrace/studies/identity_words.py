"""What the tables of identity marks come to, in a few sentences that are computed from the same rows."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from zktrace.studies.cells import papers
from zktrace.studies.equivalence import LEVEL, difference, equivalence
from zktrace.studies.guard_tables import MARGINS
from zktrace.studies.identity_cells import (
    WITHOUT,
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
    COVER,
    FEATURES,
    NONIID,
    ROUNDS,
    STRESSORS,
    SURVIVAL,
    UTILITY,
)
from zktrace.studies.identity_phrases import (
    NOTHING,
    SPOKEN,
    as_they_are,
    each_of,
    falls_short,
    far_above,
    in_paper,
    listed,
    mean_of,
    means,
    of_paper,
    reasons,
    seeds_of,
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


def attribution_words(rows: Iterable[Row]) -> str:
    """Of `attribution_table`."""
    found = as_they_are(rows)
    if not found:
        return NOTHING
    paper = {dataset: ATTRIBUTION[papers(dataset)] for dataset in found}
    below = [
        dataset
        for dataset, some in found.items()
        if falls_short(some, ATTRIBUTED, paper[dataset]["attribution"])
    ]
    verdict = "; as in the paper"
    if below:
        verdict = f"; less than in the paper on {listed([SPOKEN[each] for each in below])}"
        verdict += f", where {means({each: found[each] for each in below}, able, 1)} stations ever trained"
    return " ".join(
        (
            f"Attribution is {each_of(found, ATTRIBUTED, of_paper(paper, 'attribution'), 1, ' %')}{verdict}.",
            "Stations' bits agree with their own codeword in "
            f"{each_of(found, OWN, of_paper(paper, 'own'), 2)}, "
            f"with others' in {means(found, OTHERS, 2)} (paper 0.50).",
            f"Accuracy is {each_of(found, accuracy, of_paper(paper, 'accuracy'), 1, ' %')}{reasons(found)}; "
            f"{seeds_of(found.values())}.",
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
        first = f"{mean_of(found[dataset, few], OWN, 2)} at {few} stations and " if few < many else ""
        falls.append(
            f"on {SPOKEN[dataset]} {first}{mean_of(last, OWN, 2)} at {many} stations"
            f"{in_paper(printed.get('own'), 2)}"
        )
        ends.append(
            f"{mean_of(last, ATTRIBUTED, 1, ' %')} on {SPOKEN[dataset]} with {many} stations"
            f"{in_paper(printed.get('attribution'), 1, ' %')}, of whom {mean_of(last, able, 1)} trained; "
            f"of these {mean_of(last, of_trained, 1, ' %')}"
        )
    predicted, above = mark("predicted"), 0
    for some in found.values():
        above += fmean(values(some, OWN)) > fmean(values(some, predicted))
    return (
        f"The share of own bits is {'; '.join(falls)}. It lies above the diagnostic p-hat in {above} of "
        f"{len(found)} cells (paper: in all). Attribution is {', and '.join(ends)}; "
        f"{seeds_of(found.values())}."
        f"{_shorter(found.values())}{_read_as(found.values())}"
    )


def _read_as(groups: Iterable[Sequence[Row]]) -> str:
    """What G is, of words that are read around the mean of each layer."""
    if any(row.trial["preset"]["marks"].get("raw") for some in groups for row in some):
        return ""
    return (
        " G as read is the length of the scales before any mark, each layer around its own mean, as "
        "our words "
        "are read; the paper's G is that of the scales as they are."
    )


def _shorter(groups: Iterable[Sequence[Row]]) -> str:
    """Where codewords are shorter than the paper's, what follows from it."""
    bits = {row.trial["preset"]["marks"]["bits"] for some in groups for row in some}
    if min(bits) >= BITS:
        return ""
    return (
        f" Codewords have {listed([str(each) for each in sorted(bits)])} bits here and {BITS} in the paper: "
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
                f"with alpha = {alpha:g} on {SPOKEN[dataset]} {mean_of(some, ATTRIBUTED, 1, ' %')}"
                f"{in_paper(printed, 1, ' %')}, where {mean_of(some, able, 1)} stations trained"
            )
        alpha, share = min(own, key=lambda key: key[1])
        if share < 1:
            printed = NONIID.get((papers(dataset), alpha, share), (None, None))[0]
            absent.append(
                f"{mean_of(own[alpha, share], ATTRIBUTED, 1, ' %')} on {SPOKEN[dataset]}"
                f"{in_paper(printed, 1, ' %')} with q = {share:g}"
            )
        trained += [fmean(each) for each in (values(some, of_trained) for some in own.values()) if each]
    least = "not measured"
    if trained:
        least = "100 %" if min(trained) == 100 else f"at least {min(trained):.1f} %"
    parts = [f"Attribution over the whole roster is {'; '.join(skewed)}."] if skewed else []
    parts.append(f"Of the stations that trained at all it is {least} in every setting (paper 100 %).")
    parts += [f"With stations absent it is {listed(absent)}."] if absent else []
    parts[-1] = f"{parts[-1][:-1]}; {seeds_of(found.values())}."
    return " ".join([*parts, *_turns(found), *_untrained(found.values())])


def _turns(found: Mapping[tuple[str, float, float], Sequence[Row]]) -> list[str]:
    """Why attribution is less than the paper's where stations are absent."""
    told = []
    for (dataset, alpha, share), some in found.items():
        printed = NONIID.get((papers(dataset), alpha, share), (None, None))[0]
        if share < 1 and printed and falls_short(some, ATTRIBUTED, printed):
            rounds = fmean(row.trial["preset"]["federation"]["rounds"] for row in some)
            turns = f"about {share * rounds:.0f} turns in {rounds:.0f} rounds"
            told.append(f"on {SPOKEN[dataset]} with q = {share:g} a station has {turns}")
    return (
        [f"Turns are few (the paper has {ROUNDS} rounds): {listed(told)}, too few for whole words."]
        if told
        else []
    )


def _untrained(groups: Iterable[Sequence[Row]]) -> list[str]:
    """What accuracy is where no station trained."""
    if all(any(able(row) for row in some) for some in groups):
        return []
    return ["Where no station trained, accuracy is that of the pre-trained model, and attribution is chance."]


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
            f"On {SPOKEN[dataset]} marks change {listed(told)}; scales spread {with_marks:.1f} times as wide "
            f"as before (paper {BROADENED[0]} to {BROADENED[1]}), {without:.1f} times without marks."
        )
    if not sentences:
        return NOTHING
    if all(smaller):
        sentences.append("Marks move the scales less than in the paper, and can move features less.")
    sides = [[with_marks for _, with_marks in both] for both in found.values()]
    return " ".join(sentences)[:-1] + f"; {seeds_of(sides)}."


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
        test = equivalence(differences, MARGINS[dataset], cover=COVER)
        shown = "are as good as" if test.shown else "are not shown to be as good as"
        reach = f"90 % interval {test.low:+.2f} to {test.high:+.2f}"
        small = reasons({dataset: marks_of(both)}, "; training is short and networks are small: ")
        beyond = "" if test.shown else f"; the interval reaches beyond the margin{small}"
        sentences.append(
            f"On {SPOKEN[dataset]} federations with marks {shown} those without, within "
            f"{test.margin:g} points: "
            f"{test.mean:+.2f} over {len(both)} pairs, {reach}, p = {test.chance:.2g} ({theirs}){beyond}."
        )
        chance = difference(differences)
        if chance <= LEVEL:
            kind = f"The {'loss' if test.mean < 0 else 'gain'} is {'nevertheless ' if test.shown else ''}"
            sentences.append(f"{kind}significant (paired t test, p = {chance:.2g}).")
    return " ".join(sentences) or NOTHING


def marks_of(both: Iterable[tuple[Row, Row]]) -> list[Row]:
    """The sides of pairs that have marks."""
    return [with_marks for _, with_marks in both]


def stressors_words(rows: Iterable[Row]) -> str:
    """Of `stressors_table`."""
    found, sentences = marked(rows), []
    for variant, words in (("median", "With the coordinate-wise median"), ("shift", "Under receiver shift")):
        some = {dataset: each for (dataset, name), each in found.items() if name == variant}
        if not some:
            continue
        paper = {dataset: STRESSORS.get((papers(dataset), variant), {}) for dataset in some}
        plain = {dataset: found[dataset, WITHOUT] for dataset in some if (dataset, WITHOUT) in found}
        calm = f", without stress {means(plain, accuracy, 1, ' %')}" if plain else ""
        why = ""
        if any(far_above(each, accuracy, paper[data].get("accuracy")) for data, each in some.items()):
            why = (
                " Stations change the pre-trained model little in so few rounds, so the median costs little."
            )
        known = f"{each_of(some, accuracy, of_paper(paper, 'accuracy'), 1, ' %')}{calm}"
        known += f"; {seeds_of(some.values())}"
        sentences.append(
            f"{words} attribution is "
            f"{each_of(some, ATTRIBUTED, of_paper(paper, 'attribution'), 1, ' %')}; accuracy "
            f"is {known}.{why}"
        )
    return " ".join(sentences) or NOTHING
