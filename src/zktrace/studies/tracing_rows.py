"""Rows of the study of tracing, one leak at a time, in whichever of its two shapes they were saved.

Rows of a finished model have one coalition each; rows of federations have all coalitions of a size.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Final, NamedTuple

from zktrace.carriers import NAMES, PROFILES
from zktrace.studies.cells import DATASETS, papers
from zktrace.studies.rows import Row

NORMAL, CANDIDATE, CERTIFIED = "normal", "candidate", "certified"
RULES: Final = {
    NORMAL: "normal threshold alone",
    CANDIDATE: "candidate threshold alone",
    CERTIFIED: "certificate",
}


TEN: Final = 10  # stations of the paper's federations, where it says nothing else
AVERAGE: Final = "mean"  # how coalitions put copies together, where a trial says nothing
VARIANTS: Final = {"shift": "receiver shift", "median": "coordinate-wise median"}
_CROWD: Final = "stations-"  # variants that another column tells


class Setting(NamedTuple):
    """What rows of one line have in common."""

    dataset: str
    stations: int
    carriers: str
    profile: str
    variant: str = ""  # of the federation; empty: as it is
    strategy: str = AVERAGE

    @classmethod
    def of(cls, trial: Mapping[str, Any]) -> "Setting":
        """A trial's."""
        return cls(
            trial["dataset"],
            trial["stations"],
            "+".join(trial["carriers"]),
            trial["profile"],
            "" if trial.get("variant", "").startswith(_CROWD) else trial.get("variant", ""),
            trial.get("strategy", AVERAGE),
        )

    @property
    def data(self) -> str:
        """For people; a federation that is another than usual is called so."""
        stress = f", {VARIANTS.get(self.variant, self.variant)}" if self.variant else ""
        return DATASETS[self.dataset] + stress

    @property
    def plain(self) -> bool:
        """Averages of a federation as it is."""
        return not self.variant and self.strategy == AVERAGE

    @property
    def usual(self) -> bool:
        """Of as many stations as the paper's."""
        return self.plain and self.stations == TEN

    @property
    def ours(self) -> bool:
        """Whether its profile is another than the paper's."""
        return self.profile != "paper"

    @property
    def papers(self) -> tuple[str, str]:
        """The carrier, and the paper's own data of the same kind."""
        return self.carriers, papers(self.dataset)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The first of a line."""
        return self.data, str(self.stations), self.carriers, self.profile

    @property
    def order(self) -> tuple[Any, ...]:
        """The paper's profile first; carriers in the order of their table, several at once behind them."""
        names, parts = list(NAMES), self.carriers.split("+")
        place = (len(parts), [names.index(each) for each in parts])
        return (
            list(DATASETS).index(self.dataset),
            self.variant,
            self.strategy != AVERAGE,
            self.stations,
            -list[str](PROFILES).index(self.profile),
            place,
            self.strategy,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakRow:
    """One coalition, and what came of what it leaked."""

    setting: Setting
    seed: int
    members: tuple[int, ...]
    outcome: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Of the coalition."""
        return len(self.members)

    @property
    def decode(self) -> Mapping[str, Any]:
        """What the one carrier's decode is like; empty for several carriers, and in rows that say nothing."""
        found: Mapping[str, Any] = self.outcome.get("decodes", {}).get(self.setting.carriers, {})
        return found

    def named(self, rule: str) -> set[int] | None:
        """Whom a rule names; None where the row does not tell."""
        if rule == CERTIFIED:
            return set(self.outcome["named"])
        beyond = self.decode.get("beyond")
        return None if beyond is None else set(beyond[rule])

    def traced(self, rule: str) -> bool:
        """Whether somebody of the coalition is named, and nobody else. Of one owner: isolated."""
        named = self.named(rule) or set()
        return bool(named) and named <= set(self.members)

    def whole(self, rule: str) -> bool:
        """Whether everybody of the coalition is named, and nobody else."""
        return self.named(rule) == set(self.members)

    def frames(self, rule: str) -> bool:
        """Whether an innocent is named."""
        return bool((self.named(rule) or set()) - set(self.members))


def leak_rows(rows: Iterable[Row]) -> Iterator[LeakRow]:
    """Of all rows of the study that have coalitions."""
    for row in rows:
        if row.trial["study"] != "tracing" or row.trial["part"] == "cost":
            continue
        several = row.trial["part"] == "coalitions"
        held = row.outcome["leaks"] if several else [{"members": row.trial["members"]} | row.outcome]
        for each in held:
            yield LeakRow(
                setting=Setting.of(row.trial),
                seed=row.trial["seed"],
                members=tuple(each["members"]),
                outcome=each,
            )


def size_of(row: Row) -> int:
    """Members of each coalition of a row; none of what copies cost."""
    if row.trial["part"] == "cost":
        return 0
    some = row.outcome["leaks"] if row.trial["part"] == "coalitions" else [row.trial]
    return len(some[0]["members"]) if some else 0


def by_setting(rows: Iterable[Row]) -> dict[Setting, list[LeakRow]]:
    """In the order of lines."""
    found = defaultdict[Setting, list[LeakRow]](list)
    for leak in leak_rows(rows):
        found[leak.setting].append(leak)
    return {key: found[key] for key in sorted(found, key=lambda each: each.order)}


def averages(groups: Mapping[Setting, list[LeakRow]]) -> dict[Setting, list[LeakRow]]:
    """Without those whose copies were put together in another way: they have a table of their own."""
    return {each: leaks for each, leaks in groups.items() if each.strategy == AVERAGE}


def costs(rows: Iterable[Row]) -> dict[Setting, list[Row]]:
    """The rows of what copies cost."""
    found = defaultdict[Setting, list[Row]](list)
    for row in rows:
        if row.trial["study"] == "tracing" and row.trial["part"] == "cost":
            found[Setting.of(row.trial)].append(row)
    return {key: found[key] for key in sorted(found, key=lambda each: each.order)}


def rules_of(leaks: Iterable[LeakRow]) -> list[str]:
    """The rules that all of these tell of."""
    some = list(leaks)
    return [rule for rule in RULES if all(each.named(rule) is not None for each in some)]


def seeds(leaks: Iterable[LeakRow]) -> int:
    """How many federations."""
    return len({each.seed for each in leaks})


def count(leaks: Iterable[LeakRow], rule: str) -> str:
    """Traced, of how many; a dash for none."""
    some = list(leaks)
    return f"{sum(each.traced(rule) for each in some)}/{len(some)}" if some else "-"


def everybody(leaks: Iterable[LeakRow], rule: str) -> str:
    """Coalitions whose members are all named, and nobody else, of how many; a dash for none."""
    some = list(leaks)
    return f"{sum(each.whole(rule) for each in some)}/{len(some)}" if some else "-"


def names_several(setting: Setting, rule: str) -> bool:
    """Whether a rule can name more than one: the paper's with its certificate names the first alone."""
    return setting.ours or rule != CERTIFIED


def rate(leaks: Iterable[LeakRow], rule: str) -> float | None:
    """The part that is traced."""
    some = [each.traced(rule) for each in leaks]
    return mean(some) if some else None


def per_seed(pairs: Iterable[tuple[int, float | None]]) -> list[float]:
    """Means of each seed's numbers; what a row does not tell is left out."""
    found = defaultdict[int, list[float]](list)
    for seed, value in pairs:
        if value is not None:
            found[seed].append(value)
    return [mean(each) for each in found.values()]


def spread(values: list[float], digits: int = 2) -> str:
    """Mean and standard deviation over seeds; a mean alone of one seed, a dash of none."""
    if not values:
        return "-"
    around = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{around}"


def measured(leaks: Iterable[LeakRow], name: str, digits: int = 2) -> str:
    """A number of decodes, over seeds."""
    return spread(per_seed((each.seed, each.decode.get(name)) for each in leaks), digits)
