"""Coalitions that put their copies together in other ways than by averaging: a table, and a word on it."""

from collections.abc import Iterable, Mapping

from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row
from zktrace.studies.tracing_phrases import listed
from zktrace.studies.tracing_rows import (
    AVERAGE,
    CERTIFIED,
    LeakRow,
    Setting,
    by_setting,
    everybody,
    names_several,
    seeds,
)


def compared(rows: Iterable[Row]) -> dict[Setting, list[LeakRow]]:
    """Coalitions of several by strategy; averages are beside those of whom there are other strategies."""
    groups = by_setting(rows)
    tried = {each._replace(strategy=AVERAGE) for each in groups if each.strategy != AVERAGE}
    found = {
        each: [leak for leak in leaks if leak.size > 1]
        for each, leaks in groups.items()
        if each._replace(strategy=AVERAGE) in tried
    }
    some = {each: leaks for each, leaks in found.items() if leaks}
    return {each: some[each] for each in sorted(some, key=_place)}


def _place(setting: Setting) -> tuple[object, ...]:
    return *setting._replace(strategy=AVERAGE).order, setting.strategy != AVERAGE, setting.strategy


def strategies_table(rows: Iterable[Row]) -> str:
    """By data, carrier, strategy and size: coalitions traced, named whole, framing an innocent."""
    found, lines = compared(rows), []
    sizes = _sizes(found)
    for setting, leaks in found.items():
        line = (*setting.cells, setting.strategy, str(seeds(leaks)))
        lines.append((*line, *(_cell(setting, leaks, size) for size in sizes)))
    told = (f"k = {size}: traced, everybody, framed" for size in sizes)
    return markdown(("data", "stations", "carrier", "profile", "strategy", "seeds", *told), lines)


def _sizes(found: Mapping[Setting, list[LeakRow]]) -> list[int]:
    """That are put together in another way than by averaging."""
    tried = (leaks for setting, leaks in found.items() if setting.strategy != AVERAGE)
    return sorted({each.size for leaks in tried for each in leaks})


def _cell(setting: Setting, leaks: list[LeakRow], size: int) -> str:
    here = [each for each in leaks if each.size == size]
    if not here:
        return "-"
    traced = sum(each.traced(CERTIFIED) for each in here)
    whole = everybody(here, CERTIFIED) if names_several(setting, CERTIFIED) else "-"
    framed = sum(each.frames(CERTIFIED) for each in here)
    return f"{traced}/{len(here)}, {whole}, {framed}"


def strategies_words(rows: Iterable[Row]) -> str:
    """Which strategy hides best, and who is framed."""
    found = compared(rows)
    if not found:
        return "No rows tell of this yet."
    sizes = _sizes(found)
    every = [each for leaks in found.values() for each in leaks if each.size in sizes]
    traced, framed = (
        sum(each.traced(CERTIFIED) for each in every),
        sum(each.frames(CERTIFIED) for each in every),
    )
    first = (
        f"Of {len(every)} coalitions, averages among them, {traced} are traced under a certificate and "
        f"{framed} frame an innocent; each is decided with a budget of 1/1000."
    )
    missed = {
        (setting, size): [each.traced(CERTIFIED) for each in leaks if each.size == size]
        for setting, leaks in found.items()
        for size in sizes
    }
    shares = {key: sum(some) / len(some) for key, some in missed.items() if some}
    (setting, size), least = min(shares.items(), key=lambda each: each[1])
    if least == 1:
        hidden = " No strategy hides a coalition of any size."
    else:
        some = missed[setting, size]
        hidden = (
            f" Best hidden are {size} members by {setting.strategy}, on {setting.data} by "
            f"{setting.carriers} in profile {setting.profile}: {sum(some)}/{len(some)} traced."
        )
    return f"{first}{hidden}{_whole(found)} The paper averages alone."


def _whole(found: Mapping[Setting, list[LeakRow]]) -> str:
    """Carriers by which every member of every coalition is named, whatever it does."""
    leaks: dict[str, list[LeakRow]] = {}
    for setting, some in found.items():
        leaks.setdefault(setting.carriers, []).extend(some)
    names = [name for name, some in leaks.items() if all(each.whole(CERTIFIED) for each in some)]
    return f" Everybody is named, whatever a coalition does, by {listed(names)}." if names else ""
