"""The page of a judgement: what was examined, step by step, what was not, and with what. For the file."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from zktrace.court import Judgement, Policy, Step
from zktrace.errors import CannotTell, EvidenceRejected
from zktrace.report.html import Child, Html, bullets, code, facts, join, name, section, table, tag
from zktrace.report.page import page

NOTHING_LEFT = "Nothing that these steps ask for was left unchecked."
WHAT_IT_IS = (
    "This page records what one run of the judge's protocol examined. It is a bound on a procedure: how "
    "seldom such an investigation names an innocent. It is not the probability that the accused is innocent, "
    "and it does not say who published a copy."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """One run of the judge: upheld, rejected, or ended where nothing decides."""

    at: str  # the judge's own clock
    evidence: tuple[str, str]  # name of the file, SHA-256 of its bytes
    head: str
    before: str | None
    given: tuple[tuple[str, str], ...]  # (what, name of the file) beside evidence and heads
    policy: Policy
    outcome: Judgement | EvidenceRejected | CannotTell
    steps: tuple[Step, ...]
    reached: int  # the last step that was begun
    versions: tuple[tuple[str, str], ...]


def judgement_html(hearing: Hearing) -> str:
    """The whole document."""
    title = outcome_word(hearing.outcome)
    subtitle = join(("Judgement of ", hearing.at, " on ", name(hearing.evidence[0])))
    return page(title=f"{title}: evidence before a judge", subtitle=subtitle, body=judgement_body(hearing))


def judgement_body(hearing: Hearing) -> Html:
    """Its sections, for a page of somebody else's."""
    left = [fact for step in hearing.steps for fact in step.unchecked]
    return join(
        (
            section("Outcome", *_outcome(hearing.outcome), tag("p", WHAT_IT_IS, class_="note")),
            section("What was before the judge", facts(_exhibits(hearing))),
            section("Step by step", *(_step(each, hearing) for each in hearing.steps)),
            section("What was not checked", bullets(left) if left else tag("p", NOTHING_LEFT)),
            section(
                "The judge's policy",
                table(("condition", "value"), hearing.policy.rows(), caption="What this judge asks for"),
            ),
            section("Made with", facts(hearing.versions)),
        )
    )


def versions(*, torch: bool = False) -> tuple[tuple[str, str], ...]:
    """What a second judge needs to repeat this one to the last digit."""
    names = (
        "zktrace",
        "numpy",
        "python-flint",
        "safetensors",
        "cryptography",
        *(("torch",) if torch else ()),
    )
    return (
        ("Python", platform.python_version()),
        *((each, metadata.version(each)) for each in names),
        ("machine", f"{platform.system()} {platform.machine()}"),
    )


def outcome_word(found: Judgement | EvidenceRejected | CannotTell) -> str:
    """How it ended, in a word or two."""
    if isinstance(found, Judgement):
        return "Upheld"
    return "Rejected" if isinstance(found, EvidenceRejected) else "Cannot tell"


def _outcome(found: Judgement | EvidenceRejected | CannotTell) -> Iterator[Html]:
    if isinstance(found, CannotTell):
        yield tag(
            "p", tag("b", "Cannot tell: nothing speaks against the evidence, and something is missing.")
        )
        yield tag("p", str(found))
        return
    if isinstance(found, EvidenceRejected):
        yield tag("p", tag("b", f"Rejected at step {found.step}, {found.title}."))
        yield tag("p", found.reason)
        return
    who = join(part for at, each in enumerate(found.named) for part in (", " if at else None, name(each)))
    yield tag("p", tag("b", "Upheld: ", found.verdict, "."))
    yield tag("p", "Named: ", who, ".") if found.named else tag("p", "Nobody is accused.")
    if found.bound:
        yield tag("p", found.bound)


def _exhibits(hearing: Hearing) -> Iterator[tuple[str, Child]]:
    yield "evidence", name(hearing.evidence[0])
    yield "SHA-256 of the evidence", code(hearing.evidence[1])
    yield "head of the log", code(hearing.head)
    yield "earlier head", "none was given" if hearing.before is None else code(hearing.before)
    for what, file in hearing.given:
        yield what, name(file)
    if isinstance(hearing.outcome, Judgement):
        yield "digest of the suspect", code(hearing.outcome.suspect.hex())
        yield "release", name(hearing.outcome.release)


def _step(step: Step, hearing: Hearing) -> Html:
    heading, outcome = tag("h3", f"({step.number}) {step.title}"), hearing.outcome
    ended = not isinstance(outcome, Judgement)
    if ended and step.number > hearing.reached:
        return join((heading, tag("p", "Not reached.")))
    lines: list[Child] = [*step.checked]
    lines += [join((tag("b", "not checked: "), fact)) for fact in step.unchecked]
    if ended and step.number == hearing.reached:
        reason = outcome.reason if isinstance(outcome, EvidenceRejected) else str(outcome)
        lines.append(join((tag("b", f"{outcome_word(outcome).lower()}: "), reason)))
    return join((heading, bullets(lines)))
