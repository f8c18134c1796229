"""A sentence or two in words for tables of insiders and of steered words, computed from their rows."""

from collections.abc import Sequence

from zktrace.studies.cells import DATASETS
from zktrace.studies.insider_tables import KNOWS
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
    """Pairs under the paper's steering, and what steering downwards does."""
    found = [row for row in rows if row.trial["study"] == "steering"]
    pairs = [
        row
        for row in found
        if (row.trial["size"], row.trial["law"], row.trial["steering"]) == (2, "tardos", "majority")
        and row.trial["strength"] > 0
    ]
    traced, count = sum(row.outcome["traced"] for row in pairs), sum(row.trial["trials"] for row in pairs)
    framed, every = sum(row.outcome["framed"] for row in found), sum(row.trial["trials"] for row in found)
    lowest = min(found, key=lambda row: row.outcome["traced"] / row.trial["trials"])
    return (
        f"Pairs that steer to their majority, under the paper's law, are traced in {traced} of {count} "
        f"(paper: every one). In {framed} of {every} coalitions of any kind an innocent is named (paper: 0 "
        "of 400); each is decided with a budget of 1/1000. A coalition that knows better does better: "
        f"{lowest.trial['size']} members, law {lowest.trial['law']}, {lowest.trial['steering']} at "
        f"{lowest.trial['strength']:g} of the positions, are traced in {lowest.outcome['traced']} of "
        f"{lowest.trial['trials']}, which the paper did not try."
    )
