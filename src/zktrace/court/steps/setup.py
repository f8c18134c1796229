"""(4) Setup: codes, carriers, profile and rule fit together, and everything happened in its order."""

from zktrace.carriers import CARRIERS, IDENTITY
from zktrace.court.bench import Bench
from zktrace.court.steps.ledger import check_ledger, check_names
from zktrace.court.steps.receipts import check_receipts
from zktrace.evidence import CarrierOpening
from zktrace.registry.records import PLACE, RELEASE, RULE_OF


def check_setup(bench: Bench) -> None:
    """Hold the file against setup, release and plan, and recount the registry if there is one."""
    dossier, minutes, findings = bench.dossier, bench.minutes, bench.evidence.findings
    case, places = dossier.investigation, dossier.places
    check_names(bench)
    _check_order(bench)
    _check_promises(bench)
    _check_looks(bench)
    if case.release != dossier.release.name:
        minutes.reject(f"the investigation is of release {case.release}, the entry of {dossier.release.name}")
    for carrier in case.carriers:
        layout = dossier.release.layout(carrier)
        if layout is None or dossier.setup.code(carrier) is None:
            minutes.reject(f"{carrier}: investigated, but not a carrier of setup and release")
        if RULE_OF[layout.profile] != case.rule:
            minutes.reject(f"{carrier}: profile {layout.profile} is not read under the rule {case.rule}")
    for opening in bench.evidence.carriers:
        _check_code(bench, opening)
    if case.budget and findings.level != case.budget:
        minutes.reject(f"the findings are made for {findings.level}, the budget on record is {case.budget}")
    minutes.saw(
        f"rule {case.rule}, carriers {', '.join(case.carriers)}; "
        f"investigation (entry {places['investigation']}) before verdict (entry {places['verdict']})"
    )
    check_ledger(bench)
    check_receipts(bench)


def _check_looks(bench: Bench) -> None:
    """The looks are those of the plan, in its order; all of them were taken unless the last one named."""
    findings, plan, minutes = bench.evidence.findings, bench.dossier.investigation.looks, bench.minutes
    if len(findings.looks) > len(plan) or (not findings.stages and len(findings.looks) < len(plan)):
        minutes.reject(f"{len(findings.looks)} looks were taken, the plan on record has {len(plan)}")
    for number, (taken, wanted) in enumerate(zip(findings.looks, plan, strict=False), start=1):
        read = tuple(each.carrier for each in taken.carriers)
        if read != wanted.carriers and (read or wanted.alignment == IDENTITY):
            minutes.reject(
                f"look {number} read {', '.join(read) or 'nothing'}, "
                f"on record are {', '.join(wanted.carriers)}"
            )
    minutes.saw(
        f"{len(findings.looks)} of {len(plan)} looks on record were taken, the last: "
        f"{', '.join(bench.look.carriers)}, {bench.look.alignment}"
    )


def _check_order(bench: Bench) -> None:
    dossier, minutes = bench.dossier, bench.minutes
    places, case = dossier.places, dossier.investigation
    if places["setup"] != 0:
        minutes.reject(f"the setup is entry {places['setup']} of the log, it must be the first")
    if dossier.verdict.investigation != places["investigation"]:
        minutes.reject(
            f"the verdict is on entry {dossier.verdict.investigation}, "
            f"the investigation is entry {places['investigation']}"
        )
    if places["investigation"] > places["verdict"]:
        minutes.reject(
            f"the investigation is entry {places['investigation']}, after its verdict, {places['verdict']}"
        )
    for what, place in places.items():
        if what not in ("investigation", "verdict") and place > places["investigation"]:
            minutes.reject(f"{what} is entry {place}, after the investigation, {places['investigation']}")
    if case.recipients > places["investigation"] - 2:
        minutes.reject(
            f"the investigation is entry {places['investigation']}, after setup and release there is no room "
            f"for {case.recipients} enrolments"
        )
    for name, enrolment in dossier.enrolments.items():
        if enrolment.row >= case.recipients:
            minutes.reject(f"{name} has row {enrolment.row}, the investigation scored {case.recipients} rows")
        if enrolment.row >= places[f"enrolment {name}"]:
            minutes.reject(
                f"{name} has row {enrolment.row} and is entry {places[f'enrolment {name}']}: "
                "there is no room for the rows before it"
            )


def _check_promises(bench: Bench) -> None:
    """Seeds were promised before anybody could know what will be made of them."""
    dossier, minutes, places = bench.dossier, bench.minutes, bench.dossier.places
    release = dossier.release
    if release.number >= places["release"]:
        minutes.reject(
            f"{release.name} is release {release.number} and entry {places['release']}: "
            "there is no room for the releases before it"
        )
    made = [(name, PLACE, each.row, places[f"enrolment {name}"]) for name, each in dossier.enrolments.items()]
    if bench.evidence.carriers:
        made.append((release.name, RELEASE, release.number, places["release"]))
    for name, kind, number, at in made:
        promised = dossier.promised_at(kind, number)
        if promised > at:
            minutes.reject(
                f"{name} is entry {at}, the seed of {kind} {number} was promised later, by entry {promised}"
            )


def _check_code(bench: Bench, opening: CarrierOpening) -> None:
    carrier, minutes = opening.carrier, bench.minutes
    code, layout = bench.dossier.setup.code(carrier), bench.dossier.release.layout(carrier)
    if code is None or layout is None:
        minutes.reject(f"{carrier}: not set up")
    scores = layout.dimension if CARRIERS[carrier].answers else 1  # of a position, in the reference
    wanted = 8 * layout.length * scores if layout.referred else 0
    if len(opening.reference) != wanted:
        minutes.reject(
            f"{carrier}: {len(opening.reference)} bytes of reference in profile {layout.profile}, "
            f"{wanted} are needed"
        )
