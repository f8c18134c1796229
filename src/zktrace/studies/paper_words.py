"""A sentence or two in words for tables of insiders and of steered words, computed from their rows."""

from collections.abc import Sequence
from fractions import Fraction

from zktrace.studies.cells import DATASETS
from zktrace.studies.insider_tables import KNOWS, steered, total
from zktrace.studies.rows import Row


def insiders_words(rows: Sequence[Row]) -> str:
    """Who escapes, by profile, and with how good a model."""
    told = []
    for profile in ("paper", "informed"):
        found = [row for row in rows if row.trial["study"] == "insiders" and row.trial["profile"] == profile]
        hybrids = [row for row in found if row.trial["kind"] == "hybrid"]
        if found:
            escaped = [row for row in found if row.outcome["escaped"]]
            told.append(
                f"Profile {profile}: {len(escaped)} of {len(found)} insiders escaped, "
                f"{sum(row.outcome['escaped'] for row in hybrids)} of {len(hybrids)} by the hybrid; "
                f"{sum(row.outcome['framed'] > 0 for row in found)} framed somebody."
            )
            told += [f"Who escaped: {'; '.join(map(_escape, escaped))}."] if escaped else []
    return " ".join([*told, "Paper: the hybrid escapes in 5, 20 and 0 of 20 by effort; nobody is framed."])


def _escape(row: Row) -> str:
    """Which insider it was, and what it has left."""
    trial, left, copy = row.trial, *(100 * row.outcome[each] for each in ("accuracy", "copy_accuracy"))
    effort = f", {trial['episodes']} episodes" if trial["episodes"] else ""
    return (
        f"{trial['kind']} by who knows {KNOWS[trial['knows']]}{effort}, {DATASETS[trial['dataset']]}, "
        f"seed {trial['seed']}: {left:.1f} % (its copy {copy:.1f} %)"
    )


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
