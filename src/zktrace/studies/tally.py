"""What came of many investigations of one kind, against the budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from zktrace.carriers import IDENTITY
from zktrace.studies.binomial import greatest, interval
from zktrace.tracing import Case


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the investigations of one row."""

    level: Fraction
    keys: int = 0
    namings: int = 0  # cases that name somebody innocent
    late: int = 0  # of these, those in which no innocent is named before the second stage
    caught: int = 0  # cases that name a colluder
    stages: int = 0  # cases in which a second stage or a later one names somebody
    aligned: int = 0  # cases that name somebody through an alignment

    def take(self, case: Case, members: Sequence[str]) -> None:
        """One more."""
        wrong = [each.stage for each in case.named if each.station not in members]
        self.keys += 1
        self.namings += bool(wrong)
        self.late += bool(wrong) and min(wrong) > 1
        self.caught += any(each.station in members for each in case.named)
        self.stages += any(each.stage > 1 for each in case.named)
        self.aligned += any(each.alignment != IDENTITY for each in case.named)

    def outcome(self) -> dict[str, Any]:
        """The counts, an interval around the rate, and whether the budget could have given so many."""
        low, high = interval(self.namings, self.keys)
        most = greatest(self.keys, self.level)
        return {
            "keys": self.keys,
            "namings": self.namings,
            "late": self.late,
            "caught": self.caught,
            "stages": self.stages,
            "aligned": self.aligned,
            "low": low,
            "high": high,
            "most": most,
            "within": self.namings <= most,
        }
