"""What tables of published systems say, in sentences made from the same rows."""

from collections.abc import Sequence

from zktrace.studies.baselines_tables import (
    DESIGNED,
    PAPER_FRAMING,
    framing,
    grouped,
    member_of,
    retained,
)
from zktrace.studies.cells import DATASETS
from zktrace.studies.rows import Row


def baselines_words(rows: Sequence[Row]) -> str:
    """Who names innocents, and how large marks are."""
    told = []
    for (data, name), parts in grouped(rows).items():
        keys = sum(row.trial["keys"] for row in parts["innocents"])
        named = sum(row.outcome["named"] for row in parts["innocents"])
        if named:
            told.append(
                f"{name}, {DATASETS[data]}: an unmarked model names somebody with {named} of {keys} keys."
            )
    for within, words in ((False, "of all sizes"), (True, f"of at most {DESIGNED} members")):
        counts = framing(rows, within=within)
        if counts is not None:
            paper = list(PAPER_FRAMING.values())[within]
            told.append(
                f"DeepMarks frames somebody in {counts[0]} of {counts[1]} averaged coalitions {words} "
                f"(paper: {100 * paper:.0f} %)."
            )
    counts = framing(rows)
    if counts is not None and counts[0] / counts[1] < min(PAPER_FRAMING.values()) / 2:
        told.append(
            "Words are read exactly here, along centred directions; the paper's wrong names come from words "
            "that are read through the noise of averaging, which its code does not withstand."
        )
    return " ".join(told)


def kd_words(rows: Sequence[Row]) -> str:
    """How many of all students keep a mark."""
    every = [(name, row) for (_, name), parts in grouped(rows).items() for row in parts["distillation"]]
    if not every:
        return ""
    kept = sum(retained(name, row.outcome, member_of(row)) for name, row in every)
    framed = sum(row.outcome["framed"] > 0 for _, row in every)
    samples = sorted({row.trial["samples"] for _, row in every})
    return (
        f"{kept} of {len(every)} students keep what their system is for; {framed} name an innocent. A "
        f"student learns from {' or '.join(f'{each:,}' for each in samples)} images."
    )
