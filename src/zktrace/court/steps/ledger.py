"""(4), the log's own rules: as far as the file shows them, and all of them with a registry."""

from collections.abc import Sequence
from fractions import Fraction

from zktrace.court.bench import Bench
from zktrace.court.judgement import Total
from zktrace.registry.ledger import Ledger, check_name, look_alike
from zktrace.registry.records import Entry


def check_names(bench: Bench) -> None:
    """Names are such as the ledger takes, and no two of the file are one station's, row or credential."""
    minutes, enrolments = bench.minutes, bench.dossier.enrolments
    check_name(bench.dossier.release.name, "release")
    seen: dict[tuple[str, object], str] = {}
    for name, enrolment in enrolments.items():
        check_name(name, "station")
        facts = (
            ("name, but for case and look-alikes", look_alike(name)),
            ("row", enrolment.row),
            ("credential", enrolment.public_key),
        )
        for what, value in facts:
            if (other := seen.setdefault((what, value), name)) != name:
                minutes.reject(f"{other} and {name} have the same {what}")
    if enrolments:
        minutes.saw(f"names, rows and credentials of {', '.join(enrolments)} are such as the ledger takes")


def check_ledger(bench: Bench) -> None:
    """Recount the registry if there is one; otherwise say what nobody looked at."""
    case, minutes = bench.dossier.investigation, bench.minutes
    if bench.export is not None:
        _recount(bench, bench.export)
        return
    minutes.left(
        "that the log keeps its rules (one enrolment a name, no name that looks like another, nothing paid "
        "for after an unpaid look, budgets within the setup's): no registry was given"
    )
    minutes.left(
        f"N = {case.recipients} is taken from the record of the investigation, no registry was given"
    )
    if bench.evidence.findings.stations:
        minutes.left("whether the accused were ever given a copy: dispatches are not in the file")


def _recount(bench: Bench, export: Sequence[bytes]) -> None:
    """Replay the registry: every rule of the ledger, N, the budgets, and the dispatches."""
    minutes, place, case = bench.minutes, bench.dossier.places["investigation"], bench.dossier.investigation
    ledger = Ledger()
    enrolled, upto = 0, Fraction(0)
    for at, data in enumerate(export):
        if at == place:
            enrolled = len(ledger.by_row)
        ledger.apply(Entry.from_bytes(data))
        if at == place:
            upto = ledger.spent
    if enrolled != case.recipients:
        minutes.reject(f"{enrolled} stations were enrolled, the investigation speaks of {case.recipients}")
    bench.recounted = Total(upto=upto, whole=ledger.spent, recounted=True)
    minutes.saw(f"N = {enrolled} recounted; all {len(export)} entries of the registry keep its rules")
    minutes.saw(
        f"investigations up to this one spent {upto}, all {len(ledger.investigations)} under the head "
        f"{ledger.spent}, of {ledger.setup.budget}"
    )
    for name in bench.evidence.findings.stations:
        _check_dispatched(bench, ledger, name)


def _check_dispatched(bench: Bench, ledger: Ledger, name: str) -> None:
    minutes, release = bench.minutes, bench.dossier.investigation.release
    limit = bench.dossier.places["investigation"] if bench.before is None else bench.before.size
    given = ledger.dispatched(station=name, release=release)
    copies = [place for place, _ in given if place < limit]
    if copies:
        minutes.saw(f"{name} was sent a copy of {release} (entry {copies[0]})")
    elif bench.policy.require_dispatch:
        minutes.reject(f"{name}: no copy of {release} is on record below entry {limit}")
    else:
        minutes.left(f"{name}: no copy of {release} is on record below entry {limit}")
