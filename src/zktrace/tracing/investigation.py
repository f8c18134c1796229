"""One investigation: readouts in, verdict out. It knows neither registry nor files.

The suspect is scored as it is, then, while nobody is certified, through one alignment after the other. Every
look has its share of the level, whether it takes place or not, so all together keep to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from zktrace.carriers import IDENTITY, NAMES, Look, planned
from zktrace.certificates.adjudicate import Rule, Verdict
from zktrace.codes import Code
from zktrace.errors import InputError
from zktrace.evidence import Findings
from zktrace.evidence.findings import CERTIFIED
from zktrace.readouts.readout import Attempt, Reading, Readout
from zktrace.tracing.score import NO_SCORES, Scored, findings, score

Steps = Callable[[str, float], None]  # what is done next, and the share of all that is done


def silent(what: str, share: float) -> None:
    """For whoever does not want to know."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What will be read, in which order, and by which rule it is decided."""

    readouts: tuple[Readout, ...]
    further: tuple[Attempt, ...] = ()
    rule: Rule = "certified"

    def __post_init__(self) -> None:
        if not self.readouts and not self.further:
            raise InputError("an investigation needs at least one carrier")

    @classmethod
    def of(cls, reading: Reading, rule: Rule, carriers: Sequence[str] | None = None) -> "Plan":
        """The plan for a reading, or for some of its carriers."""
        wanted = NAMES if carriers is None else carriers
        return cls(
            readouts=tuple(each for each in reading.readouts if each.carrier in wanted),
            further=tuple(each for each in reading.further if each.carrier in wanted),
            rule=rule,
        )

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks and their shares."""
        aligned = [(each.alignment, each.carrier) for each in self.further]
        return planned([each.carrier for each in self.readouts], aligned)

    @property
    def carriers(self) -> tuple[str, ...]:
        """All that are looked at, in the order of the table."""
        found = {name for look in self.looks for name in look.carriers}
        return tuple(each for each in NAMES if each in found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """A look that took place; without a score if the suspect could not be aligned."""

    look: Look
    readouts: tuple[Readout, ...]
    scored: Scored | None
    reason: str = ""

    @property
    def certified(self) -> bool:
        """Whether it named somebody."""
        return self.scored is not None and self.scored.verdict in CERTIFIED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Investigation:
    """An investigation that was carried out: the looks that took place, and the one that decided."""

    taken: tuple[Taken, ...]
    level: Fraction

    @property
    def chosen(self) -> Taken:
        """The look that certified, else the first that gave leads, else the first that could be read."""
        return self._decisive[0]

    @property
    def scored(self) -> Scored:
        """What it says."""
        return self._decisive[1]

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        return self.scored.verdict

    @property
    def named(self) -> tuple[int, ...]:
        """The rows that are named, each once."""
        return tuple(sorted({each.recipient for stage in self.scored.stages for each in stage}))

    @property
    def failed(self) -> tuple[tuple[str, str], ...]:
        """Alignments that could not be found, and why."""
        return tuple((each.look.alignment, each.reason) for each in self.taken if each.scored is None)

    def findings(self, stations: Sequence[str]) -> Findings:
        """What is claimed, in the names of stations."""
        return findings(self.scored, [each.readouts for each in self.taken], stations, self.level)

    @property
    def _decisive(self) -> tuple[Taken, Scored]:
        scored = [(each, each.scored) for each in self.taken if each.scored is not None]
        if not scored:
            return self.taken[0], NO_SCORES
        if self.taken[-1].certified:
            return scored[-1]
        return next((pair for pair in scored if pair[1].leads), scored[0])


def investigate(
    plan: Plan,
    code: Callable[[str], Code],
    *,
    recipients: int,
    level: Fraction,
    certify: bool = True,
    check: Callable[[Readout], object] = lambda _readout: None,
    steps: Steps = silent,
) -> Investigation:
    """Score rows 0..recipients-1 at every look of a plan, until one certifies somebody.

    `code` finds a carrier's code. Without `certify` nobody is named, there are leads only. `check` may raise
    for a readout that cannot be scored. `steps` is told of every look before it is taken.
    """

    def scored(readouts: tuple[Readout, ...], look: Look) -> Scored:
        for each in readouts:
            check(each)
        return score(
            readouts,
            tuple(code(each.carrier) for each in readouts),
            recipients=recipients,
            level=level * look.share,
            rule=plan.rule,
            certify=certify,
        )

    return Investigation(taken=tuple(_looks(plan, scored, steps)), level=level)


def _looks(
    plan: Plan, scored: Callable[[tuple[Readout, ...], Look], Scored], steps: Steps
) -> Iterator[Taken]:
    """The suspect as it is, then one attempt after the other."""
    attempts = iter(plan.further)
    for at, look in enumerate(plan.looks):
        found, what = plan.readouts, f"look {at + 1} of {len(plan.looks)}"
        how = "as it is" if look.alignment == IDENTITY else f"aligned by {look.alignment}"
        steps(f"{what}: {' + '.join(look.carriers)}, {how}", at / len(plan.looks))
        try:
            if look.alignment != IDENTITY:
                found = (next(attempts).read(),)
            taken = Taken(look=look, readouts=found, scored=scored(found, look))
        except InputError as error:
            if look.alignment == IDENTITY:
                raise
            yield Taken(look=look, readouts=(), scored=None, reason=str(error))
            continue
        yield taken
        if taken.certified:
            return
