"""One investigation, from readouts to evidence.

(1) The look is put on record, and paid for, before anything is scored; the ledger refuses to overdraw.
(2) Every enrolled row is scored, revoked stations included.
(3) The findings are made of what the certificates allow.
(4) The verdict is put on record with the digest of the findings.
(5) The evidence is put together under the head of the log.

Killed between any two of them, the log stays whole: an investigation without a verdict has spent its budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

from zktrace.certificates.adjudicate import Rule
from zktrace.codes import Code
from zktrace.errors import InputError, Refused
from zktrace.evidence import Findings
from zktrace.evidence.file import LENGTH_LIMIT
from zktrace.registry.bindings import readout_bytes, readout_digest
from zktrace.registry.custody import Custody
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import Investigation, Layout, Release, Verdict
from zktrace.registry.registry import Registry
from zktrace.tracing.case import Case
from zktrace.tracing.evidence import assemble
from zktrace.tracing.readout import Readout
from zktrace.tracing.score import findings, leads, named, score, tables

NOMINAL_LEVEL: Final = Fraction(1, 1000)  # of an investigation that has no budget
_RULES: Final[dict[str, Rule]] = {"informed": "certified", "paper": "paper"}  # of a profile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """An investigation as it is about to be put on record."""

    suspect: bytes
    release: Release
    readouts: tuple[Readout, ...]
    codes: tuple[Code, ...]
    rule: Rule
    budget: Fraction

    def record(self, ledger: Ledger) -> Investigation:
        """With everybody who is enrolled at the moment it is added."""
        if not ledger.by_row:
            raise Refused("nobody is enrolled: there is no row to score")
        return Investigation(
            suspect=self.suspect,
            release=self.release.name,
            carriers=tuple(each.carrier for each in self.readouts),
            rule=self.rule,
            budget=self.budget,
            recipients=len(ledger.by_row),
        )


def trace(
    registry: Registry,
    custody: Custody,
    *,
    suspect: bytes,
    release: str,
    readouts: Sequence[Readout],
    budget: Fraction,
    level: Fraction = NOMINAL_LEVEL,
) -> Case:
    """Investigate a suspect (the digest of its state) that was read on one carrier or more.

    `budget` is the false-accusation probability that this investigation may spend. With a budget of 0 it
    can only give leads, beyond thresholds that are made for `level`.
    """
    plan = _plan(
        registry.ledger(), custody, suspect=suspect, release=release, readouts=readouts, budget=budget
    )
    place = registry.add(plan.record)  # (1)
    case = cast(Investigation, registry.entry(place).record)
    stations = tuple(registry.ledger().by_row[: case.recipients])
    eps = case.budget or level
    scored = score(  # (2)
        plan.readouts,
        plan.codes,
        recipients=case.recipients,
        level=eps,
        rule=plan.rule,
        certify=case.budget > 0,
    )
    claims = findings(scored, plan.readouts, stations, eps)  # (3)
    verdict_place = registry.add(_verdict(place, claims))  # (4)
    evidence = assemble(  # (5)
        registry,
        custody,
        release=release,
        readouts=plan.readouts,
        findings=claims,
        places=(place, verdict_place),
    )
    return Case(
        verdict=scored.verdict,
        named=named(scored, stations),
        leads=leads(scored, stations),
        tables=tables(scored, plan.readouts),
        stations=stations,
        investigation=case,
        level=eps,
        place=place,
        verdict_place=verdict_place,
        evidence=evidence,
    )


def _verdict(place: int, claims: Findings) -> Verdict:
    return Verdict(
        investigation=place, verdict=str(claims.verdict), named=claims.stations, findings=claims.digest()
    )


def _plan(
    ledger: Ledger,
    custody: Custody,
    *,
    suspect: bytes,
    release: str,
    readouts: Sequence[Readout],
    budget: Fraction,
) -> _Plan:
    """Everything that can be wrong is found before the budget is spent."""
    found = ledger.release(release)
    if not readouts:
        raise InputError("an investigation needs at least one carrier")
    if not 0 <= budget < 1:
        raise InputError(f"a budget must lie in [0, 1), not be {budget}")
    layouts = [_layout(found, each, custody) for each in readouts]
    rules = {_RULES[each.profile] for each in layouts}
    if len(rules) != 1:
        raise Refused(f"the carriers of {release} have different profiles: trace them one by one")
    return _Plan(
        suspect=suspect,
        release=found,
        readouts=tuple(readouts),
        codes=tuple(custody.code(each.carrier) for each in readouts),
        rule=rules.pop(),
        budget=budget,
    )


def _layout(release: Release, readout: Readout, custody: Custody) -> Layout:
    layout = release.layout(readout.carrier)
    if layout is None:
        raise Refused(f"copies of {release.name} do not carry {readout.carrier}")
    length = custody.code(readout.carrier).length
    readout_bytes(readout.values)  # finite float64
    if len(readout.values) != length or length > LENGTH_LIMIT:
        raise InputError(f"{readout.carrier}: {len(readout.values)} values for a code of {length} positions")
    if (layout.profile == "informed") != (readout.reference is not None):
        raise InputError(f"{readout.carrier}: the profile {layout.profile} does not go with this readout")
    if readout.reference is not None and readout_digest(readout.reference) != layout.reference:
        raise Refused(f"{readout.carrier}: the reference readout is not the one that {release.name} recorded")
    return layout
