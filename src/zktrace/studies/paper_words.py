"""A sentence or two in words for tables of insiders and of steered words, computed from their rows."""

from collections.abc import Sequence
from fractions import Fraction
from statistics import mean
from typing import Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.insider_tables import KNOWS, steered, total
from zktrace.studies.rows import Row

_EFFORTS: Final = {1.0: 5, 2.0: 20, 4.0: 0}  # in copies -> the paper's hybrids that escape
_RUNS: Final = 20  # of each
_NEAR: Final = 0.1  # rates that differ by no more agree
_PAPERS_WHY: Final = (
    "The paper's own insider comes out differently, since copies here move less: its score falls "
    "later, and has "
    "not crossed to the other tail at four times the effort."
)
_OURS_WHY: Final = (
    "Ours have no counterpart in the paper: their marks are small and added at once, in closed form "
    "or nearly, "
    "instead of by 300 episodes of its hinge, so who erases them has to hit all carriers at once."
)


def insiders_words(rows: Sequence[Row]) -> str:
    """Who escapes, by profile, beside the paper's hybrids, and with how good a model."""
    told = []
    for profile, why in (("paper", _PAPERS_WHY), ("informed", _OURS_WHY)):
        found = [row for row in rows if row.trial["study"] == "insiders" and row.trial["profile"] == profile]
        if not found:
            continue
        escaped = [row for row in found if row.outcome["escaped"]]
        told.append(
            f"Profile {profile}: {len(escaped)} of {len(found)} insiders escaped; "
            f"{sum(row.outcome['framed'] > 0 for row in found)} framed somebody."
        )
        efforts = _hybrids(found)
        if efforts:
            cells = [f"{some[0]} of {some[1]} at {effort:g} times" for effort, some in efforts.items()]
            paper = [f"{_EFFORTS[effort]} of {_RUNS}" for effort in efforts]
            told.append(
                f"Its hybrids escape in {', '.join(cells)} a copy's effort (paper: {', '.join(paper)})."
            )
        told += [f"Who escaped: {'; '.join(_escapes(escaped))}."] if escaped else []
        unlike = any(abs(a / b - _EFFORTS[effort] / _RUNS) > _NEAR for effort, (a, b) in efforts.items())
        told += [why] if unlike else []
    return " ".join(told) or "No rows tell of this yet."


def _hybrids(rows: Sequence[Row]) -> dict[float, tuple[int, int]]:
    """By effort in copies: those of the paper's hybrids that escape, of how many."""
    found: dict[float, list[bool]] = {each: [] for each in _EFFORTS}
    for trial, outcome in ((row.trial, row.outcome) for row in rows):
        alike = (trial["kind"], trial["knows"]) == ("hybrid", "directions") and not trial.get("push")
        effort = trial["episodes"] / trial["unit"]
        if alike and effort in found:
            found[effort].append(outcome["escaped"])
    return {effort: (sum(some), len(some)) for effort, some in found.items() if some}


def _escapes(rows: Sequence[Row]) -> list[str]:
    """Which insiders they were, of one kind together, and what they have left."""
    groups = dict[str, list[Row]]()
    for row in rows:
        trial = row.trial
        effort = f", {trial['episodes']} episodes" if trial["episodes"] else ""
        name = f"{trial['kind']} by who knows {KNOWS[trial['knows']]}{effort}, {DATASETS[trial['dataset']]}"
        groups.setdefault(name, []).append(row)
    return [f"{name}, {_left(some)}" for name, some in groups.items()]


def _left(rows: Sequence[Row]) -> str:
    """Seeds, and accuracy beside a copy's."""
    left, copy = (100 * mean(row.outcome[each] for row in rows) for each in ("accuracy", "copy_accuracy"))
    seeds = sorted({row.trial["seed"] for row in rows})
    kind = "seed" if len(seeds) == 1 else "seeds"
    return f"{kind} {', '.join(map(str, seeds))}: {left:.1f} % (its copy {copy:.1f} %)"


def steering_words(rows: Sequence[Row]) -> str:
    """Pairs under the paper's steering, who is framed by law, and what steering downwards does."""
    found = [row for row in rows if row.trial["study"] == "steering"]
    pairs = [
        row
        for row in found
        if (row.trial["size"], row.trial["law"], row.trial["steering"]) == (2, "tardos", "majority")
        and row.trial["strength"] > 0
    ]
    laws = dict.fromkeys(row.trial["law"] for row in found)
    framed = [_by_law([row for row in found if row.trial["law"] == law]) for law in laws]
    lowest = min(steered(found).values(), key=lambda some: total(some, "traced") / total(some, "trials"))
    trial = lowest[0].trial
    who = f"{trial['size']} members, law {trial['law']}, {trial['steering']} at {trial['strength']:g}"
    budget = found[0].trial.get("budget", "1/1000")
    return (
        "Pairs that steer to their majority, under the paper's law, are traced in "
        f"{total(pairs, 'traced')} of {total(pairs, 'trials')} (paper: every one). An innocent is named "
        f"{' and '.join(framed)}; each investigation has a budget of {budget} (paper: 0 of 400). "
        f"A coalition that knows better does better: {who} of the positions, are traced in "
        f"{total(lowest, 'traced')} of {total(lowest, 'trials')}, which the paper did not try."
    )


def _by_law(rows: Sequence[Row]) -> str:
    """Innocents named under one law, and how many the budget lets expect."""
    trials = total(rows, "trials")
    expected = float(Fraction(rows[0].trial.get("budget", "1/1000")) * trials)
    law = f"under the law {rows[0].trial['law']} in {total(rows, 'framed')} of {trials}"
    return f"{law} (up to {expected:.1f} expected)"
