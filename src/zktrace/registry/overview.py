"""What a registry holds, counted for its operator: stations, releases, copies, cases, and the budget left."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.registry.ledger import Ledger
from zktrace.registry.records import InvestigationRecord, VerdictRecord

SHOWN: Final = 8  # names of stations in an overview
OPTION_LIMIT: Final = 40  # characters of a budget that the command line takes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCount:
    """A release and how many copies of it are on record."""

    name: str
    carriers: tuple[str, ...]
    copies: int
    stations: int  # that have one
    signed: int  # stations that signed for a copy
    unsigned: tuple[str, ...]  # the first of those that have one and did not
    rounds: int  # broadcasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A registry in numbers."""

    title: str
    stations: int  # enrolled, revoked ones too
    revoked: int
    releases: tuple[ReleaseCount, ...]  # in the order they were made
    copies: int
    cases: int
    certified: int  # cases that ended in a certified verdict
    open: int  # cases without a verdict: interrupted, their budget is spent
    budget: Fraction
    spent: Fraction
    left: Fraction
    ended_by: int | None  # the entry of an uncertified look, after which nothing can be certified


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """An investigation as the log knows it."""

    place: int
    at: str
    investigation: InvestigationRecord
    verdict: VerdictRecord | None

    def as_json(self) -> dict[str, object]:
        """For a machine."""
        case, verdict = self.investigation, self.verdict
        return {
            "investigation": self.place,
            "at": self.at,
            "suspect": case.suspect.hex(),
            "release": case.release,
            "budget": str(case.budget),
            "verdict": None if verdict is None else verdict.verdict,
            "named": [] if verdict is None else list(verdict.named),
        }


def overview(ledger: Ledger) -> Overview:
    """Count what is on record."""
    given, held = ledger.given(), {name: ledger.holding(name) for name in ledger.release_names}
    return Overview(
        title=ledger.setup.title,
        stations=len(ledger.by_row),
        revoked=ledger.revoked,
        releases=tuple(
            ReleaseCount(
                name=name,
                carriers=tuple(each.carrier for each in release.layouts),
                copies=given[name][0],
                stations=given[name][1],
                signed=len(held[name].signers),
                unsigned=tuple(held[name].unsigned[:SHOWN]),
                rounds=len(ledger.broadcasts(name)),
            )
            for name, (_, release) in ledger.releases.items()
        ),
        copies=len(ledger.dispatches),
        cases=len(ledger.investigations),
        certified=len(ledger.certified),
        open=len(ledger.investigations) - len(ledger.verdicts),
        budget=ledger.setup.budget,
        spent=ledger.spent,
        left=ledger.remaining,
        ended_by=ended_by(ledger),
    )


def ended_by(ledger: Ledger) -> int | None:
    """The entry of an uncertified look, after which nothing can be certified."""
    return ledger.unpaid[0] if ledger.unpaid else None


def case_lines(ledger: Ledger) -> tuple[CaseLine, ...]:
    """All investigations, oldest first."""
    return tuple(case_line_at(ledger, place) for place in ledger.investigations)


def case_line_at(ledger: Ledger, place: int) -> CaseLine:
    """The investigation at a place."""
    return CaseLine(
        place=place,
        at=ledger.at(place),
        investigation=ledger.investigations[place],
        verdict=ledger.verdicts[place][1] if place in ledger.verdicts else None,
    )


def budget_text(budget: Fraction) -> str:
    """A budget as the command line takes it: exact, or rounded down where that is too long."""
    exact = str(budget)
    if len(exact) <= OPTION_LIMIT:
        return exact
    scaled, shift = budget, 0
    while 0 < scaled < 1:
        scaled, shift = scaled * 10, shift + 1
    return f"{int(scaled * 1000)}e-{shift + 3}"
