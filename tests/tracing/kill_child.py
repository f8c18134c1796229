"""A parent that forks investigators which are killed; run as a program by test_kill.py.

Some kill themselves just before or after they put something on record, the others are killed at any moment.
Prints, for each, how many entries the log had gained. Exits with an error if a log is ever not whole.
"""

import os
import random
import signal
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from tracing.small import Federation, federation
from zktrace.court import Policy, judge
from zktrace.evidence import Evidence
from zktrace.primitives.files import write_atomic
from zktrace.registry.registry import Registry, Source
from zktrace.registry.stores.sql import SqlStore

POLICY = Policy(min_length=16, max_budget=Fraction(1, 10))
BUDGET = Fraction(1, 1000)
MOMENTS = (("before", 1), ("after", 1), ("before", 2), ("after", 2))


def opened(path: Path) -> Registry:
    return Registry(SqlStore.of_file(path))


class Mortal(Registry):
    """A registry whose user dies at a chosen moment: (before or after, which addition)."""

    moment: tuple[str, int] | None = None
    additions = 0

    def add(self, source: Source) -> int:
        self.additions += 1
        self._maybe("before")
        index = super().add(source)
        self._maybe("after")
        return index

    def _maybe(self, when: str) -> None:
        if self.moment == (when, self.additions):
            os.kill(os.getpid(), signal.SIGKILL)


def investigate(own: Federation, database: Path, out: Path, moment: tuple[str, int] | None = None) -> None:
    """What the child does: all of it, with a connection of its own."""
    registry = Mortal(SqlStore.of_file(database))
    registry.moment = moment
    fresh = replace(own, registry=registry)
    case = fresh.trace((1,), budget=BUDGET)
    write_atomic(out, case.evidence.to_bytes(), secret=True)


def killed(
    own: Federation, database: Path, out: Path, *, delay: float, moment: tuple[str, int] | None
) -> None:
    child = os.fork()
    if child == 0:
        try:
            investigate(own, database, out, moment)
        finally:
            os._exit(0)
    if moment is None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main(folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    database = folder / "registry.db"
    own = federation(stations=3, length=64, registry=opened(database))
    own.code("weight").biases  # noqa: B018  drawn once, for all children
    begin = time.perf_counter()
    investigate(own, database, folder / "first.json")
    whole = time.perf_counter() - begin
    size = opened(database).head().size
    for number in range(kills):
        out = folder / f"case-{number}.json"
        before = opened(database).head()
        moment = MOMENTS[number] if number < len(MOMENTS) else None
        killed(own, database, out, delay=rng.uniform(0.0, 1.3 * whole), moment=moment)
        registry = opened(database)
        head = registry.verify(extends=before)  # every entry and rule, and nothing that was there is gone
        ledger = registry.ledger()
        assert ledger.spent == BUDGET * len(ledger.investigations)
        assert 0 <= head.size - before.size <= 2
        if out.exists():  # written whole or not at all, and only after its verdict
            assert head.size - before.size == 2
            assert judge(out.read_bytes(), head=head, policy=POLICY).named == ("station-1",)
            assert Evidence.from_bytes(out.read_bytes()).head == head.to_text()
        print(head.size - before.size, int(out.exists()))
    assert opened(database).head().size >= size


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
