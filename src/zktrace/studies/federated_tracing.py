"""Tracing over many federations: each is trained, its copies leaked alone, in pairs and averaged.

Copies carry one carrier or several at once. A row has all coalitions of one size of one federation that put
their copies together in one way. What copies cost has a row of its own, with what is known of the shared
model.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Final

from zktrace.attacks.collusion import STRATEGIES
from zktrace.carriers import carrier, needs_training
from zktrace.errors import InputError
from zktrace.federation.spec import preset_facts
from zktrace.studies.ground import Ground, marking
from zktrace.studies.runner import Progress, Trial
from zktrace.studies.tracing import BUDGET, SIZES, TracingBench, TracingTrial, carried, coalitions, drawn

MEAN: Final = "mean"
OTHERS: Final = tuple(each for each in STRATEGIES if each != MEAN)
PUT_TOGETHER: Final = (3, 8)  # sizes of the coalitions that try every strategy,
TRIED: Final = 10  # and how many of each size do
_READ: Final = 0.15  # seconds of an idle core at width 16: an investigation,
_ASKED: Final = 0.8  # what a network says of its probes,
_EMBEDDED: Final = 3.0  # the test samples,
_PASSES: Final = 25.0  # a copy that is trained informed,
_EPISODE: Final = 0.15  # an episode of one in the paper's profile


@dataclass(frozen=True, kw_only=True)
class FederatedTracing:
    """One federation in one profile, and what its copies carry."""

    ground: Ground
    carriers: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    pairs: int | None = None  # so many are drawn; None: all
    copies: int | None = None  # so many stations, from the first, get a copy; None: all
    strategies: tuple[str, ...] = ()  # that some coalitions try beside the mean
    study: ClassVar[str] = "tracing"

    def __post_init__(self) -> None:
        if not self.carriers or len(set(self.carriers)) < len(self.carriers):
            raise InputError("copies carry one carrier or more, each once")
        if self.copies is not None and not 1 <= self.copies <= self.stations:
            raise InputError(f"copies for {self.copies} of {self.stations} stations")
        if unknown := [each for each in self.strategies if each not in OTHERS]:
            raise InputError(f"no strategy {unknown[0]!r} beside the mean; known: {', '.join(OTHERS)}")

    @property
    def stations(self) -> int:
        """Everybody who is enrolled, and scored."""
        return self.ground.federation.preset.federation.clients

    @property
    def name(self) -> str:
        """By federation, profile and carriers."""
        return f"{self.ground.key}-{self.ground.profile}-{'+'.join(self.carriers)}"

    @property
    def needs(self) -> tuple[Ground, ...]:
        """The federation, trained."""
        return (self.ground,)

    @property
    def size(self) -> int:
        """The cost, and a row for each size and strategy."""
        return 1 + len(self._groups) + len(self._tried) * len(self.strategies)

    @property
    def guess(self) -> float:
        """Copies, and what is read of all coalitions; networks cost by their width."""
        copies, width = self.copies or self.stations, self.ground.federation.preset.model.width / 16
        once = 0.0
        if needs_training(self.carriers, self.ground.profile):
            paper = self.ground.profile == "paper"
            once = _EPISODE * self.ground.settings.episodes if paper else _PASSES
        asked = sum(bool(carrier(each).network) for each in self.carriers) * _ASKED * width
        tried = sum(map(len, self._tried.values())) * len(self.strategies)
        read = (sum(map(len, self._groups.values())) + tried) * (_READ + asked)
        return copies * once * width + (copies + 1) * _EMBEDDED * width + read

    @cached_property
    def _groups(self) -> dict[int, list[tuple[int, ...]]]:
        """Coalitions by their size."""
        found: dict[int, list[tuple[int, ...]]] = {}
        seed, holders = self.ground.federation.seed, self.copies or self.stations
        for members in coalitions(holders, seed, self.sizes, pairs=self.pairs):
            found.setdefault(len(members), []).append(members)
        return found

    @cached_property
    def _tried(self) -> dict[int, list[tuple[int, ...]]]:
        """Coalitions that try every strategy, by their size."""
        seed, holders = self.ground.federation.seed, self.copies or self.stations
        return {size: list(drawn(holders, size, TRIED, seed)) for size in PUT_TOGETHER if size < holders}

    def facts(self) -> dict[str, Any]:
        """What all rows say; nothing is trained for that."""
        federation = self.ground.federation
        variant = {"variant": federation.variant} if federation.variant else {}
        return variant | {
            "study": self.study,
            "dataset": federation.preset.data.dataset,
            "seed": federation.seed,
            "preset": preset_facts(federation.preset),
            "width": federation.preset.model.width,
            "stations": self.stations,
            "copies": self.copies or self.stations,
            "carriers": list(self.carriers),
            "profile": self.ground.profile,
            "settings": marking(self.ground.settings, self.carriers, self.ground.profile),
            "budget": str(BUDGET),
        }

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Copies that are missing are made for the first one."""
        facts, bench = self.facts(), _FederationBench(batch=self, report=report)
        yield Trial(facts=facts | {"part": "cost"}, outcome=bench.cost)
        for size, groups in self._groups.items():
            told = {"part": "coalitions", "size": size, "coalitions": len(groups)}
            yield Trial(facts=facts | told, outcome=partial(bench.leaks, groups))
        for strategy in self.strategies:
            for size, groups in self._tried.items():
                told = {"part": "coalitions", "size": size, "coalitions": len(groups), "strategy": strategy}
                yield Trial(facts=facts | told, outcome=partial(bench.leaks, groups, strategy))


@dataclass(frozen=True, kw_only=True)
class _FederationBench:
    """The federation, once it is trained."""

    batch: FederatedTracing
    report: Progress

    @cached_property
    def _bench(self) -> TracingBench:
        ground = self.batch.ground
        trial = TracingTrial(
            spec=ground.spec,
            model=ground.model,
            carriers=self.batch.carriers,
            profile=ground.profile,
            settings=ground.settings,
            copies=self.batch.copies,
        )
        return TracingBench(trial=trial, work=ground.work, report=self.report)

    def cost(self) -> dict[str, Any]:
        """Of copies; and the load and attribution of identity marks in the shared model."""
        found = self._bench.cost()
        names = self.batch.ground.spec.source.load()[0].class_names
        found["recall"]["classes"] = [names[each] for each in found["recall"]["classes"]]
        result = json.loads((self.batch.ground.folder / "result.json").read_bytes())
        marks = result.get("marks") or {}
        known = {name: marks.get(name) for name in ("load", "attribution")}
        return found | known | {"model": self.batch.ground.digest}

    def leaks(self, groups: Sequence[tuple[int, ...]], strategy: str = MEAN) -> dict[str, Any]:
        """One after the other."""
        found = []
        for done, members in enumerate(groups, start=1):
            found.append({"members": list(members)} | self._bench.leak(members, strategy))
            self.report(f"coalitions of {len(members)}", done, len(groups))
        return {"leaks": found, "model": self.batch.ground.digest}


def tracings(
    places: Sequence[Ground],
    carriers: Sequence[tuple[str, ...]] = (),
    *,
    sizes: Sequence[int] = SIZES,
    pairs: int | None = None,
    copies: int | None = None,
    strategies: Sequence[str] = (),
) -> list[FederatedTracing]:
    """Every federation in its profile, with copies that carry each of these; none: each by itself.

    What a profile does not have is left out. Those of one federation stand together. Strategies beside the
    mean are tried on informed copies.
    """
    found = [
        FederatedTracing(
            ground=place,
            carriers=some,
            sizes=tuple(sizes),
            pairs=pairs,
            copies=copies,
            strategies=tuple(strategies) if place.profile == "informed" else (),
        )
        for place in places
        for some in carried(place.profile, carriers)
    ]
    if not found:
        raise InputError("no profile that is asked for has copies that carry these")
    order = list(dict.fromkeys(each.key for each in places))
    return sorted(found, key=lambda each: order.index(each.ground.key))
