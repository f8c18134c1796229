"""The child process that judges an evidence file: standard input -> what it found, on standard output.

It is the judge's own call. What it says is an object of bounded fields, which its parent reads like any file
of a stranger's.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Self

from zktrace.court import STEPS, Judgement, Minutes, Policy, Step, Total, judge
from zktrace.errors import CannotTell, EvidenceRejected, MalformedFile
from zktrace.evidence import Evidence
from zktrace.evidence.file import FILE_LIMIT
from zktrace.evidence.findings import ACCUSED_LIMIT
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.child import Caps, answering
from zktrace.primitives.fields import (
    Declared,
    choice,
    flag,
    fraction,
    listed,
    nested,
    table,
    text,
    whole,
)
from zktrace.primitives.text import one_line
from zktrace.registry.forms import NAME_LIMIT, Digest, Name
from zktrace.registry.log import Extension, Head

ANSWER_LIMIT: Final = 1 << 20  # bytes
CAPS: Final = Caps(address_bytes=2 << 30, cpu_seconds=180, answer_bytes=ANSWER_LIMIT)
_LINES: Final = 1 << 10  # of a step
_LINE: Final = 1 << 12  # characters
_HEAD: Final = 200
_MOST: Final = 1 << 20
_ENDS: Final = ("upheld", "rejected", "cannot tell")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHeard(Declared):
    """A step of the protocol."""

    what: ClassVar = "a step"
    checked: Annotated[tuple[str, ...], listed(text(_LINE), high=_LINES)]
    unchecked: Annotated[tuple[str, ...], listed(text(_LINE), high=_LINES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpheldHeard(Declared):
    """A judgement but for its steps."""

    what: ClassVar = "a judgement"
    verdict: Annotated[str, text(100)]
    named: Annotated[tuple[str, ...], listed(text(NAME_LIMIT), high=ACCUSED_LIMIT)]
    suspect: Digest
    release: Name
    budget: Annotated[Fraction, fraction()]
    upto: Annotated[Fraction, fraction()]
    altogether: Annotated[Fraction, fraction()]
    recounted: Annotated[bool, flag()]
    recipients: Annotated[int, whole(0, _MOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard(Declared):
    """What came of a hearing."""

    what: ClassVar = "a hearing"
    end: Annotated[str, choice(_ENDS)]
    reason: Annotated[tuple[str, ...], listed(text(_LINE), high=1)]  # unless it is upheld
    upheld: Annotated[tuple[UpheldHeard, ...], listed(nested(UpheldHeard), high=1)]
    heads: Annotated[tuple[str, ...], listed(text(_HEAD), high=1)]  # the file's, where it is to be bridged
    reached: Annotated[int, whole(1, len(STEPS))]
    steps: Annotated[tuple[StepHeard, ...], listed(nested(StepHeard), low=len(STEPS), high=len(STEPS))]

    @classmethod
    def of(cls, outcome: Judgement | EvidenceRejected | CannotTell, minutes: Minutes, head: str = "") -> Self:
        """In the words of the judge, each line as long as a line is."""
        reasons: tuple[str, ...] = ()
        if not isinstance(outcome, Judgement):
            reason = outcome.reason if isinstance(outcome, EvidenceRejected) else str(outcome)
            reasons = (one_line(reason, limit=_LINE),)
        return cls(
            end=_END[type(outcome)],
            reason=reasons,
            upheld=(_upheld(outcome),) if isinstance(outcome, Judgement) else (),
            heads=(head,) if head else (),
            reached=max(minutes.at, 1),
            steps=tuple(
                StepHeard(checked=_lines(each.checked), unchecked=_lines(each.unchecked))
                for each in minutes.steps()
            ),
        )

    def all_steps(self) -> tuple[Step, ...]:
        """With their numbers and titles."""
        return tuple(
            Step(number=number, title=STEPS[number], checked=each.checked, unchecked=each.unchecked)
            for number, each in enumerate(self.steps, 1)
        )

    def outcome(self) -> Judgement | EvidenceRejected | CannotTell:
        """The same value that the judge came to in the child."""
        if self.end == "cannot tell":
            return CannotTell(self.reason[0])
        if self.end == "rejected":
            return EvidenceRejected(step=self.reached, title=STEPS[self.reached], reason=self.reason[0])
        (found,) = self.upheld
        return Judgement(
            verdict=found.verdict,
            named=found.named,
            suspect=found.suspect,
            release=found.release,
            budget=found.budget,
            total=Total(upto=found.upto, whole=found.altogether, recounted=found.recounted),
            recipients=found.recipients,
            steps=self.all_steps(),
        )

    def check(self) -> None:
        """A judgement where there is one, and a reason where there is none."""
        counts = (1, 0) if self.end == "upheld" else (0, 1)
        if (len(self.upheld), len(self.reason)) != counts:
            raise MalformedFile("a hearing: has either a judgement or a reason")


_END: Final[dict[type, str]] = dict(zip((Judgement, EvidenceRejected, CannotTell), _ENDS, strict=True))


def _upheld(found: Judgement) -> UpheldHeard:
    return UpheldHeard(
        verdict=found.verdict,
        named=found.named,
        suspect=found.suspect,
        release=found.release,
        budget=found.budget,
        upto=found.total.upto,
        altogether=found.total.whole,
        recounted=found.total.recounted,
        recipients=found.recipients,
    )


def _lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(each, limit=_LINE) for each in lines[:_LINES])


def main(argument: str) -> None:
    """Judge the file on standard input. `argument`: the head, and consistency proofs of the same log."""
    answering(CAPS, lambda: _hear(argument))


def _hear(argument: str) -> None:
    given = table(from_json(argument.encode(), what="a request"), "a request", ("head", "extensions"))
    head, extensions = Head.from_text(given["head"]), [Extension.from_json(e) for e in given["extensions"]]
    with open(0, "rb", closefd=False) as handle:
        data = handle.read(FILE_LIMIT + 1)
    minutes, file_head = Minutes(), ""
    outcome: Judgement | EvidenceRejected | CannotTell
    try:
        outcome = judge(data, head=head, policy=Policy(), extensions=extensions, minutes=minutes)
    except EvidenceRejected as ended:
        outcome = ended
    except CannotTell as ended:
        outcome, file_head = ended, Evidence.from_bytes(data).head
    with open(1, "wb", closefd=False) as out:
        out.write(to_json(Heard.of(outcome, minutes, file_head).as_json()))
