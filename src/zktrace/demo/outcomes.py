"""What a demo leaves: for each case what was expected, what happened, and the values a picture is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from zktrace.registry.ledger import Ledger
from zktrace.tracing import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well each station's component of a model agrees with each codeword."""

    matrix: Sequence[Sequence[float]]
    stations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Percentage points of accuracy that each copy loses."""

    by_station: Mapping[str, float]
    mean: float
    allowed: float  # on average


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A suspect that was traced, from its file to its evidence."""

    case: Case
    suspect: Path
    evidence: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Steps of an examination, and the one that failed (from 1), if any did."""

    title: str
    steps: tuple[str, ...]
    failed: int | None


Shown: TypeAlias = Agreement | Losses | Traced | Examined


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was expected of a case, and what happened."""

    case: str
    expected: str
    happened: str
    ok: bool
    shown: Shown

    @property
    def facts(self) -> dict[str, object]:
        """Without what is drawn."""
        return {"case": self.case, "expected": self.expected, "happened": self.happened, "ok": self.ok}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A story that was told, and where its files are."""

    folder: Path
    outcomes: tuple[Outcome, ...]
    ledger: Ledger  # at the end
    head: str

    @property
    def wrong(self) -> int:
        """How many cases ended other than expected."""
        return sum(not each.ok for each in self.outcomes)
