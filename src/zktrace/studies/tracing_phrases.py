"""Parts of the sentences that stand beside tables of leaked copies."""

from collections.abc import Iterable
from typing import Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.rows import Row
from zktrace.studies.tracing_rows import TEN, VARIANTS, Setting

NEAR: Final = 0.05  # rates that differ by no more agree
NO_ROWS: Final = "No rows tell of this yet."
_SCALES: Final = 75  # of a ResNet-18, times its width
_WIDTH, _EPISODES = 64, 300  # the paper's


def place(setting: Setting) -> str:
    """Data, for a sentence: simulated data are called so. Stations, where they are not the usual ten."""
    kind, _, how = DATASETS[setting.dataset].partition(", ")
    many = "" if setting.stations == TEN else f" with {setting.stations} stations"
    stress = f" under {VARIANTS.get(setting.variant, setting.variant)}" if setting.variant else ""
    return f"{f'{how} {kind}' if how else kind}{many}{stress}"


def listed(parts: Iterable[str]) -> str:
    """One, two, or more of them."""
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last


def set_beside(ours: float, theirs: float, *, near: float = NEAR) -> str:
    """A number, and whether the paper's is near."""
    if abs(ours - theirs) <= near:
        return f"{ours:.2f} (about the paper's {theirs:.2f})"
    return f"{ours:.2f} ({'more' if ours > theirs else 'less'} than the paper's {theirs:.2f})"


def why(rows: Iterable[Row]) -> str:
    """What sets these federations apart from the paper's, as far as rows tell."""
    trials = [
        row.trial for row in rows if row.trial["study"] == "tracing" and row.trial["profile"] == "paper"
    ]
    if not trials:
        return ""
    widths, episodes = {each["width"] for each in trials}, {each["settings"]["episodes"] for each in trials}
    told = []
    if widths != {_WIDTH}:
        room = "/".join(f"{_SCALES * each:,}" for each in sorted(widths))
        told.append(f"networks here have {room} scales (paper: {_SCALES * _WIDTH:,})")
    if episodes != {_EPISODES}:
        told.append(f"copies {'/'.join(map(str, sorted(episodes)))} episodes (paper: {_EPISODES})")
    return f" What may explain a difference: {listed(told)}." if told else ""
