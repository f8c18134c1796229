"""What a judge found, step by step: what was checked, and what was not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NoReturn

from zktrace.errors import CannotTell, EvidenceRejected, InputError, MalformedEvidence, Rejected

STEPS: Final = {
    1: "format",
    2: "head and inclusion",
    3: "openings",
    4: "setup",
    5: "readout",
    6: "scores",
    7: "certificates",
    8: "budget and policy",
    9: "verdict",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One numbered step of the protocol."""

    number: int
    title: str
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What the investigations of a log may have spent together: the sum of their budgets."""

    upto: Fraction  # this investigation and all before it
    whole: Fraction  # all under the judge's head
    recounted: bool  # from an exported registry; otherwise both are what the setup allows

    def __str__(self) -> str:
        if not self.recounted:
            return f"{self.whole} for all of the log together (what the setup allows, not recounted)"
        later = "" if self.whole == self.upto else f"; {self.whole} with those after it"
        return f"{self.upto} for all of the log up to it (recounted{later})"

    def as_json(self) -> dict[str, object]:
        """For a machine."""
        return {"recounted": self.recounted, "upto": str(self.upto), "whole": str(self.whole)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Upheld: every step passed. A rejected file gives no judgement but an error."""

    verdict: str
    named: tuple[str, ...]
    suspect: bytes  # digest
    release: str
    budget: Fraction
    total: Total
    recipients: int
    steps: tuple[Step, ...]

    @property
    def bound(self) -> str:
        """What is proved of innocents, in one sentence; empty if nobody is accused."""
        if not self.named:
            return ""
        return (
            f"The probability that any innocent of {self.recipients} stations is named is at most "
            f"{self.budget} for this investigation and {self.total}, "
            "if nobody who shaped a suspect knew anything of an innocent's secret row."
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        """All that was not checked."""
        return tuple(fact for step in self.steps for fact in step.unchecked)

    def as_json(self) -> dict[str, object]:
        """For a machine."""
        return {
            "bound": self.bound,
            "budget": str(self.budget),
            "named": list(self.named),
            "recipients": self.recipients,
            "release": self.release,
            "steps": [
                {
                    "checked": list(each.checked),
                    "step": each.number,
                    "title": each.title,
                    "unchecked": list(each.unchecked),
                }
                for each in self.steps
            ],
            "suspect": self.suspect.hex(),
            "total": self.total.as_json(),
            "verdict": self.verdict,
        }


@dataclass(slots=True)
class Minutes:
    """The record of a judge at work: where the protocol is, and what was seen."""

    at: int = 0
    checked: dict[int, list[str]] = field(default_factory=dict)
    unchecked: dict[int, list[str]] = field(default_factory=dict)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """A step; whatever is found wanting inside is a rejection in it.

        A bad format stays one, what decides neither way stays that, and a judge without torch is told so.
        """
        self.at = number
        try:
            yield
        except (EvidenceRejected, MalformedEvidence, CannotTell):
            raise
        except (InputError, Rejected) as error:
            raise EvidenceRejected(step=number, title=STEPS[number], reason=str(error)) from error

    def saw(self, fact: str) -> None:
        """Something that was checked in the present step."""
        self.checked.setdefault(self.at, []).append(fact)

    def left(self, fact: str) -> None:
        """Something that the present step would have liked to check and could not."""
        self.unchecked.setdefault(self.at, []).append(fact)

    def reject(self, reason: str) -> NoReturn:
        """End here."""
        raise EvidenceRejected(step=self.at, title=STEPS[self.at], reason=reason)

    def steps(self) -> tuple[Step, ...]:
        """For the judgement."""
        return tuple(
            Step(
                number=number,
                title=title,
                checked=tuple(self.checked.get(number, ())),
                unchecked=tuple(self.unchecked.get(number, ())),
            )
            for number, title in STEPS.items()
        )
