"""The judge's protocol. Nothing is believed that can be recomputed; a failure names its step.

(1) Format. The file is canonical, bounded, and its parts are about the same stations and carriers.
(2) Head and inclusion. The file's head is the judge's, or is extended by it in an exported registry; every
    entry is under the head; the entries are those that are needed and no other. Where an earlier head is
    given, setup, release, enrolments and dispatches of the accused are under that one.
(3) Openings. Codewords are those of the public keys; rows, biases and directions open the commitments of
    enrolment, setup and release; readouts have the digests that were claimed and recorded.
(4) Setup. Codes, carriers, profile and rule fit together; the investigation came after what it is about and
    before its verdict; the looks that were taken, the number of recipients and the level are those on record.
(5) Readout. The suspect, where given, has the recorded digest, and reading it in the way of the look that
    named gives the claimed values: a model's scales, as they are or aligned, or scores that were collected.
    The shared model, where given, is the release's and reads as the reference.
(6) Scores. Every claimed score is that of the opened row, stage by stage, exactly.
(7) Certificates. The judge makes every certificate itself; every score is beyond it, and every claim holds,
    also on the judge's own readout; nobody was kept for a later stage.
(8) Budget and policy. What was spent, look by look, was on record beforehand and is no more than the judge's
    policy allows.
(9) Verdict. It is what the numbers say, and the log has the digest of the findings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from zktrace.certificates.adjudicate import Rule, Verdict
from zktrace.certificates.certificate import Certificate
from zktrace.codes import Biases
from zktrace.credentials import PublicKey
from zktrace.errors import InputError
from zktrace.evidence import CarrierOpening, Evidence, Stage
from zktrace.evidence.figures import chance, down, up
from zktrace.evidence.findings import CERTIFIED
from zktrace.judge.dossier import Dossier, open_dossier
from zktrace.judge.judgement import Judgement, Minutes
from zktrace.judge.policy import DEFAULT_POLICY, Policy
from zktrace.judge.scoring import Look, beyond, compare, look, own_certificate
from zktrace.models import ModelState, model_digest
from zktrace.primitives import merkle
from zktrace.primitives.gf2 import Bits
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import OutputReader, scores_digest
from zktrace.readouts.weight import Profile, WeightReader
from zktrace.registry.bindings import (
    bias_commitment,
    directions_commitment,
    enrolment_commitment,
    readout_digest,
)
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Head, Inclusion
from zktrace.registry.records import IDENTITY, Entry, Layout
from zktrace.registry.records import Look as PlannedLook

RULE_OF: Final = {"informed": "certified", "paper": "paper"}  # profile -> rule
READOUT_TOLERANCE: Final = 1e-9  # of the largest projection: what the order of a float sum can move
ALIGNED_TOLERANCE: Final = 1e-6  # the same, through an alignment
_NO_DIGEST: Final = bytes(32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect:
    """What the judge was given of the suspect: the model, or the scores of one that was only queried."""

    model: ModelState | None = None
    scores: NDArray[Any] | None = None
    shared: ModelState | None = None  # the release's model, which an aligned suspect is held against

    @property
    def given(self) -> bool:
        return self.model is not None or self.scores is not None


@dataclass(slots=True, kw_only=True)
class _Bench:
    """What lies before the judge, and what the steps found so far."""

    evidence: Evidence
    policy: Policy
    suspect: Suspect
    export: Sequence[bytes] | None
    before: Head | None
    minutes: Minutes
    dossier: Dossier
    biases: dict[str, Biases]
    stages: dict[tuple[int, str], Look]  # (stage counted from 1, carrier)
    read: dict[str, NDArray[np.float64]]  # by carrier: what the judge itself read from the suspect

    @property
    def rule(self) -> Rule:
        return cast(Rule, self.dossier.investigation.rule)

    @property
    def look(self) -> PlannedLook:
        """The last look that was taken: the one that named somebody, if anybody is named."""
        return self.dossier.investigation.looks[len(self.evidence.findings.looks) - 1]

    @property
    def level(self) -> Fraction:
        """What that look may spend."""
        return self.evidence.findings.level * self.look.share


def judge(
    evidence: bytes,
    *,
    head: Head,
    policy: Policy = DEFAULT_POLICY,
    suspect: ModelState | None = None,
    scores: NDArray[Any] | None = None,
    shared: ModelState | None = None,
    export: Sequence[bytes] | None = None,
    before: Head | None = None,
) -> Judgement:
    """Check an evidence file against a head that the judge got elsewhere.

    `suspect` is the model that the case is about, or `scores` what it answered if it was only queried;
    `shared` the release's model, `export` all entries of the registry, and `before` a head that somebody
    witnessed before the suspect was known. Raises MalformedEvidence for a file that cannot be read,
    EvidenceRejected for one that does not hold.
    """
    minutes = Minutes()
    with minutes.step(1):
        parsed = Evidence.from_bytes(evidence)
        minutes.saw(f"canonical JSON of {len(evidence)} bytes, {len(parsed.entries)} entries of the log")
    with minutes.step(2):
        _check_head(parsed, head, export, minutes)
        dossier = open_dossier(parsed)
        _check_before(dossier, before, export, minutes)
    bench = _Bench(
        evidence=parsed,
        policy=policy,
        suspect=Suspect(model=suspect, scores=scores, shared=shared),
        export=None if export is None else export[: head.size],
        before=before,
        minutes=minutes,
        dossier=dossier,
        biases={},
        stages={},
        read={},
    )
    for number, step in _STEPS.items():
        with minutes.step(number):
            step(bench)
    return Judgement(
        verdict=str(parsed.findings.verdict),
        named=parsed.findings.stations,
        suspect=dossier.investigation.suspect,
        release=dossier.release.name,
        budget=dossier.investigation.budget,
        recipients=dossier.investigation.recipients,
        steps=minutes.steps(),
    )


# ── (2) head and inclusion ──────────────────────────────────────────────────────────────────────────────────


def _check_head(evidence: Evidence, head: Head, export: Sequence[bytes] | None, minutes: Minutes) -> None:
    theirs = Head.from_text(evidence.head)
    if export is not None:
        leaves = [merkle.leaf_hash(each) for each in export]
        for name, wanted in (("the judge's", head), ("the evidence's", theirs)):
            if wanted.size > len(leaves) or merkle.root(leaves[: wanted.size]) != wanted.root:
                minutes.reject(f"the exported registry of {len(leaves)} entries is not under {name} head")
        if theirs.size > head.size:
            minutes.reject(f"the evidence needs a log of {theirs.size} entries, the head has {head.size}")
        minutes.saw(f"the exported registry extends the evidence's head ({theirs.size} entries)")
    elif theirs != head:
        minutes.reject(
            f"the evidence is under the head {theirs.to_text()}, the judge's is {head.to_text()} "
            "(an exported registry would show whether one extends the other)"
        )
    for each in evidence.entries:
        Inclusion(index=each.index, size=theirs.size, path=each.path).verify(each.entry, theirs)
    minutes.saw(f"{len(evidence.entries)} entries are in the log of {theirs.size} under the head")


def _check_before(
    dossier: Dossier, before: Head | None, export: Sequence[bytes] | None, minutes: Minutes
) -> None:
    """What must have been promised before there was a suspect lies under the witnessed head."""
    if before is None:
        minutes.left(
            "that rows, release and reference were fixed before the suspect: no earlier head was given"
        )
        return
    if export is None:
        minutes.reject("an earlier head can only be compared with an exported registry, and none was given")
    if (
        before.size > len(export)
        or merkle.root([merkle.leaf_hash(x) for x in export[: before.size]]) != before.root
    ):
        minutes.reject(f"the exported registry does not extend the earlier head {before.to_text()}")
    for what, place in dossier.places.items():
        if what not in ("investigation", "verdict") and place >= before.size:
            minutes.reject(f"{what} is entry {place}, the earlier head has {before.size} entries")
    minutes.saw(f"setup, release and enrolments are under the earlier head of {before.size} entries")


# ── (3) openings ────────────────────────────────────────────────────────────────────────────────────────────


def _check_openings(bench: _Bench) -> None:
    if not bench.evidence.accused:
        bench.minutes.saw("nobody is accused, nothing is opened")
    for each in bench.evidence.carriers:
        _open_carrier(bench, each)
    for accused in bench.evidence.accused:
        enrolment = bench.dossier.enrolments[accused.station]
        public = PublicKey.from_bytes(enrolment.public_key)
        codeword = public.codeword(bench.dossier.setup.identity_bits)
        if codeword != enrolment.codeword:
            bench.minutes.reject(
                f"{accused.station}: enrolled with the codeword {enrolment.codeword.hex()}, "
                f"its public key has {codeword.hex()}"
            )
        promised = dict(enrolment.commitments)
        for row in accused.rows:
            made = enrolment_commitment(row.opening, row.carrier, public, codeword, row.row)
            if promised.get(row.carrier) != made:
                bench.minutes.reject(
                    f"{accused.station}: the {row.carrier} row opens {made.hex()}, "
                    f"enrolled was {promised.get(row.carrier, b'').hex() or 'none'}"
                )
        carriers = ", ".join(row.carrier for row in accused.rows)
        bench.minutes.saw(f"{accused.station}: codeword of its key, enrolled row opened ({carriers})")


def _open_carrier(bench: _Bench, opening: CarrierOpening) -> None:
    carrier, minutes = opening.carrier, bench.minutes
    code = bench.dossier.setup.code(carrier)
    layout = bench.dossier.release.layout(carrier)
    if code is None or layout is None:
        minutes.reject(f"{carrier}: an accusation on a carrier that setup and release do not both have")
    biases = Biases(thresholds=opening.bias_thresholds(), colluders=code.colluders)
    bench.biases[carrier] = biases
    claimed = {each.carrier: each.readout for each in bench.evidence.findings.carriers}
    reference = opening.reference_values()
    pairs = (
        ("biases", bias_commitment(opening.bias_opening, carrier, biases), code.biases),
        ("directions", directions_commitment(opening.direction_seed, carrier), layout.directions),
        (
            "reference readout",
            _NO_DIGEST if reference is None else readout_digest(reference),
            layout.reference,
        ),
        ("readout", readout_digest(opening.values()), claimed[carrier]),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            minutes.reject(
                f"{carrier}: the {what} of the file hash to {found.hex()}, on record is {wanted.hex()}"
            )
    minutes.saw(f"{carrier}: biases, directions, reference and readout are those on record")


# ── (4) setup ───────────────────────────────────────────────────────────────────────────────────────────────


def _check_setup(bench: _Bench) -> None:
    dossier, minutes, findings = bench.dossier, bench.minutes, bench.evidence.findings
    case, places = dossier.investigation, dossier.places
    _check_order(bench)
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
    if bench.export is None:
        minutes.left(
            f"N = {case.recipients} is taken from the record of the investigation, no registry was given"
        )
        if findings.stations:
            minutes.left("whether the accused were ever given a copy: dispatches are not in the file")
    else:
        _recount(bench, bench.export)


def _check_looks(bench: _Bench) -> None:
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


def _check_order(bench: _Bench) -> None:
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
    for name, enrolment in dossier.enrolments.items():
        if enrolment.row >= case.recipients:
            minutes.reject(f"{name} has row {enrolment.row}, the investigation scored {case.recipients} rows")


def _check_code(bench: _Bench, opening: CarrierOpening) -> None:
    carrier, minutes = opening.carrier, bench.minutes
    code, layout = bench.dossier.setup.code(carrier), bench.dossier.release.layout(carrier)
    if code is None or layout is None:
        minutes.reject(f"{carrier}: not set up")
    if opening.length != code.length:
        minutes.reject(f"{carrier}: {opening.length} biases for a code of {code.length} positions")
    scores = layout.dimension if carrier == "output" else 1  # of a position, in the reference
    wanted = 8 * code.length * scores if layout.profile == "informed" else 0
    if len(opening.reference) != wanted:
        minutes.reject(
            f"{carrier}: {len(opening.reference)} bytes of reference in profile {layout.profile}, "
            f"{wanted} are needed"
        )
    width, spare = -(-code.length // 8), -code.length % 8
    for accused in bench.evidence.accused:
        row = accused.row(carrier).row
        if len(row) != width or row[-1] & ((1 << spare) - 1):
            minutes.reject(
                f"{accused.station}: {len(row)} bytes are no {carrier} row of {code.length} positions"
            )


def _recount(bench: _Bench, export: Sequence[bytes]) -> None:
    """Replay the registry: every rule of the ledger, N, the budgets, and the dispatches."""
    minutes, places, case = bench.minutes, bench.dossier.places, bench.dossier.investigation
    ledger = Ledger()
    enrolled = 0
    for place, data in enumerate(export):
        if place == places["investigation"]:
            enrolled = len(ledger.by_row)
        ledger.apply(Entry.from_bytes(data))
    if enrolled != case.recipients:
        minutes.reject(f"{enrolled} stations were enrolled, the investigation speaks of {case.recipients}")
    minutes.saw(f"N = {enrolled} recounted; all {len(export)} entries of the registry keep its rules")
    minutes.saw(f"all investigations together spent {ledger.spent} of {ledger.setup.budget}")
    for name in bench.evidence.findings.stations:
        limit = places["investigation"] if bench.before is None else bench.before.size
        copies = [
            place
            for place, each in ledger.dispatches
            if each.station == name and each.release == case.release and place < limit
        ]
        if copies:
            minutes.saw(f"{name} was sent a copy of {case.release} (entry {copies[0]})")
        elif bench.policy.require_dispatch:
            minutes.reject(f"{name}: no copy of {case.release} is on record below entry {limit}")
        else:
            minutes.left(f"{name}: no copy of {case.release} is on record below entry {limit}")


# ── (5) readout ─────────────────────────────────────────────────────────────────────────────────────────────


def _check_readouts(bench: _Bench) -> None:
    minutes, suspect = bench.minutes, bench.suspect
    if suspect.shared is not None:
        _check_shared(bench, suspect.shared)
    elif bench.evidence.carriers:
        minutes.left("that the reference readout is the shared model's: the shared model was not given")
    if not suspect.given:
        minutes.left("that the readouts are the suspect's: no suspect was given")
        return
    recorded = bench.dossier.investigation.suspect
    for what, digest in _digests(suspect):
        if digest != recorded:
            minutes.reject(
                f"the {what} given has the digest {digest.hex()}, investigated was {recorded.hex()}"
            )
        minutes.saw(f"the {what} is the one that was investigated ({digest.hex()[:16]}...)")
    for opening in bench.evidence.carriers:
        layout = bench.dossier.release.layout(opening.carrier)
        again = None if layout is None else _read_again(bench, opening, layout)
        if again is not None:
            _agree(bench, opening.carrier, again, opening.values(), what="suspect")
            bench.read[opening.carrier] = again.values


def _check_shared(bench: _Bench, shared: ModelState) -> None:
    digest, wanted = model_digest(shared), bench.dossier.release.model
    if digest != wanted:
        bench.minutes.reject(
            f"the shared model given has the digest {digest.hex()}, released was {wanted.hex()}"
        )
    bench.minutes.saw(f"the shared model is that of the release ({digest.hex()[:16]}...)")
    for opening in bench.evidence.carriers:
        layout, reference = bench.dossier.release.layout(opening.carrier), opening.reference_values()
        if layout is None or reference is None:
            continue
        if opening.carrier != "weight":
            bench.minutes.left(f"{opening.carrier}: the reference is not recomputed, reading it takes torch")
            continue
        projected = _reader(opening, layout).project(shared)
        scale = float(np.abs(projected).max())
        again = _Again(values=projected, scale=scale, tolerance=READOUT_TOLERANCE)
        _agree(bench, opening.carrier, again, reference, what="shared model")


def _digests(suspect: Suspect) -> Iterator[tuple[str, bytes]]:
    if suspect.model is not None:
        yield "suspect", model_digest(suspect.model)
    if suspect.scores is not None:
        yield "matrix of scores", scores_digest(suspect.scores)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Again:
    """A readout that the judge made."""

    values: Floats
    scale: float  # what differences are held against
    tolerance: float


def _read_again(bench: _Bench, opening: CarrierOpening, layout: Layout) -> _Again | None:
    """The readout as the judge can make it, if it can."""
    suspect, minutes = bench.suspect, bench.minutes
    if opening.carrier == "output" and suspect.scores is not None:
        return _from_scores(opening, layout, suspect.scores)
    if opening.carrier != "weight" or suspect.model is None:
        minutes.left(f"{opening.carrier}: not recomputed here, reading it takes the probes and torch")
        return None
    if bench.look.alignment == IDENTITY:
        return _from_scales(opening, layout, suspect.model, READOUT_TOLERANCE)
    if suspect.shared is None:
        minutes.left(
            f"{opening.carrier}: not recomputed, aligning the suspect takes the release's shared model"
        )
        return None
    aligned = align_scales(suspect.model, suspect.shared)
    return _from_scales(opening, layout, aligned, ALIGNED_TOLERANCE)


def _reader(opening: CarrierOpening, layout: Layout) -> WeightReader:
    return WeightReader(
        seed=opening.direction_seed,
        length=opening.length,
        layers=layout.layers,
        profile=cast(Profile, layout.profile),
        reference=opening.reference_values(),
    )


def _from_scales(opening: CarrierOpening, layout: Layout, arrays: Arrays, tolerance: float) -> _Again:
    reference = opening.reference_values()
    projected = _reader(opening, layout).project(arrays)
    again = projected if reference is None else projected - reference
    scale = max(float(np.abs(projected).max()), 0.0 if reference is None else float(np.abs(reference).max()))
    return _Again(values=again, scale=scale, tolerance=tolerance)


def _from_scores(opening: CarrierOpening, layout: Layout, scores: NDArray[Any]) -> _Again:
    reference = opening.reference_values()
    if reference is None:
        raise InputError("the output carrier has no reference")
    reader = OutputReader(
        seed=opening.direction_seed, length=opening.length, classes=layout.dimension, reference=reference
    )
    scale = float(np.abs(reference).max())
    return _Again(values=reader.read_scores(scores), scale=scale, tolerance=READOUT_TOLERANCE)


def _agree(bench: _Bench, carrier: str, again: _Again, claimed: Floats, *, what: str) -> None:
    """The values of the file are those of the model, but for the order of a float sum.

    That says nothing of a readout as small as the rounding: step 7 looks at the judge's own values too.
    """
    away, allowed = np.abs(again.values - claimed), again.tolerance * again.scale
    at = int(np.argmax(away))
    if not away[at] <= allowed:
        bench.minutes.reject(
            f"{carrier}: position {at} reads {float(again.values[at])!r} in the {what}, "
            f"the evidence has {float(claimed[at])!r}"
        )
    how = "" if bench.look.alignment == IDENTITY else f" aligned by {bench.look.alignment},"
    bench.minutes.saw(
        f"{carrier}:{how} {len(claimed)} values of the {what} read again, at most {away[at]:.1e} off "
        f"(allowed {allowed:.1e}: the order of a float sum)"
    )


# ── (6) scores ──────────────────────────────────────────────────────────────────────────────────────────────


def _check_scores(bench: _Bench) -> None:
    before: list[str] = []
    for number, stage in enumerate(bench.evidence.findings.stages, start=1):
        for carrier, _ in stage.certificates:
            bench.stages[number, carrier] = look(
                bench.evidence.carrier(carrier).values(),
                bench.biases[carrier],
                _rows_of(bench, before, carrier),
                rule=bench.rule,
                tail=stage.tail,
            )
        _check_stage_scores(bench, number, stage)
        before += stage.stations
    if not bench.evidence.findings.stages:
        bench.minutes.saw("nobody is accused, no score is claimed")
        bench.minutes.left("the scores behind a lead or its absence: no row is opened")


def _own_look(bench: _Bench, number: int, stage: Stage, carrier: str) -> Look:
    """The same stage on the values that the judge read itself."""
    before = [name for each in bench.evidence.findings.stages[: number - 1] for name in each.stations]
    return look(
        bench.read[carrier],
        bench.biases[carrier],
        _rows_of(bench, before, carrier),
        rule=bench.rule,
        tail=stage.tail,
    )


def _rows_of(bench: _Bench, stations: Sequence[str], carrier: str) -> Bits:
    """The rows already named, in the order of the code, as the tracer takes them out."""
    order = sorted(stations, key=lambda name: bench.dossier.enrolments[name].row)
    accused = {each.station: each for each in bench.evidence.accused}
    rows = [np.frombuffer(accused[name].row(carrier).row, dtype=np.uint8) for name in order]
    return np.array(rows, dtype=np.uint8) if rows else np.empty((0, 0), dtype=np.uint8)


def _check_stage_scores(bench: _Bench, number: int, stage: Stage) -> None:
    accused = {each.station: each for each in bench.evidence.accused}
    for naming in stage.named:
        row = accused[naming.station].row(naming.carrier).row
        score = bench.stages[number, naming.carrier].score(row)
        if score != naming.score:
            bench.minutes.reject(
                f"stage {number}, {naming.carrier}: {naming.station} is said to score "
                f"{float(naming.score):.4f}, its row scores {float(score):.4f}"
            )
        bench.minutes.saw(f"stage {number}, {naming.carrier}: {naming.station} scores {down(score)}")


# ── (7) certificates ────────────────────────────────────────────────────────────────────────────────────────


def _check_certificates(bench: _Bench) -> None:
    case, minutes, findings = bench.dossier.investigation, bench.minutes, bench.evidence.findings
    for number, stage in enumerate(findings.stages, start=1):
        for carrier, claimed in stage.certificates:
            seen, where = bench.stages[number, carrier], f"stage {number}, {carrier}"
            own = _certificate(bench, seen, number, where)
            compare(claimed, own, seen)
            limits = (own.threshold, claimed.threshold)
            _check_beyond(bench, seen, stage, carrier, thresholds=limits, where=where)
            _check_nobody_kept(bench, seen, number, carrier, own.threshold)
            minutes.saw(
                f"{where}: an innocent among {case.recipients} scores above {up(own.threshold)} "
                f"with probability at most {chance(own.budget)}"
            )
            if carrier in bench.read:
                again, where = _own_look(bench, number, stage, carrier), f"{where}, read by the judge"
                threshold = _certificate(bench, again, number, where).threshold
                _check_beyond(bench, again, stage, carrier, thresholds=(threshold,), where=where)
                minutes.saw(f"{where}: whoever is named is above {up(threshold)} there too")
    if not findings.stages:
        minutes.saw("nobody is accused, nothing is certified")


def _certificate(bench: _Bench, seen: Look, number: int, where: str) -> Certificate:
    """The judge's own, which must pass."""
    case = bench.dossier.investigation
    own = own_certificate(
        seen,
        recipients=case.recipients,
        level=bench.level,
        stage=number,
        carriers=len(bench.look.carriers),
        rule=bench.rule,
    )
    if not own.passes:
        bench.minutes.reject(
            f"{where}: the exponent {own.exponent[0]} does not reach the required {own.required}"
        )
    return own


def _check_beyond(
    bench: _Bench, seen: Look, stage: Stage, carrier: str, *, thresholds: tuple[Fraction, ...], where: str
) -> None:
    accused = {each.station: each for each in bench.evidence.accused}
    for naming in (each for each in stage.named if each.carrier == carrier):
        row = accused[naming.station].row(carrier).row
        for threshold in thresholds:
            if not beyond(seen, row, threshold):
                bench.minutes.reject(
                    f"{where}: {naming.station} scores {float(seen.score(row)):.4f}, "
                    f"not above the threshold {float(threshold):.4f}"
                )


def _check_nobody_kept(bench: _Bench, seen: Look, number: int, carrier: str, threshold: Fraction) -> None:
    """A stage names everybody beyond it: whoever is named later was not beyond it.

    Otherwise an operator could choose whom a later stage takes out, and try as often as there are choices.
    """
    later = {name for stage in bench.evidence.findings.stages[number:] for name in stage.stations}
    for accused in bench.evidence.accused:
        if accused.station in later and beyond(seen, accused.row(carrier).row, threshold):
            bench.minutes.reject(
                f"stage {number}, {carrier}: {accused.station} is named at a later stage, but is beyond "
                f"the threshold {float(threshold):.4f} at this one"
            )


# ── (8) budget and policy ───────────────────────────────────────────────────────────────────────────────────


def _check_policy(bench: _Bench) -> None:
    case, policy, minutes = bench.dossier.investigation, bench.policy, bench.minutes
    findings, setup = bench.evidence.findings, bench.dossier.setup
    asked = (
        ("the suspect", policy.require_suspect, bench.suspect.given or None),
        ("the shared model", policy.require_shared, bench.suspect.shared),
        ("an exported registry", policy.require_registry, bench.export),
        ("an earlier head", policy.require_before, bench.before),
    )
    for what, required, given in asked:
        if required and given is None:
            minutes.reject(f"the policy asks for {what}, and none was given")
    if case.budget > setup.budget:
        minutes.reject(f"the investigation spent {case.budget}, all of them may spend {setup.budget}")
    if case.budget > policy.max_budget:
        minutes.reject(f"the investigation spent {case.budget}, the policy allows {policy.max_budget}")
    if findings.stages and case.budget == 0:
        minutes.reject("stations are named, but the investigation has a budget of 0: it may give leads only")
    if case.rule not in policy.rules:
        minutes.reject(f"the rule {case.rule} is not one the policy allows ({', '.join(policy.rules)})")
    if findings.verdict == Verdict.TAMPER and not policy.accept_tamper:
        minutes.reject("the verdict is tampering, and the policy does not let it count")
    for opening in bench.evidence.carriers:
        if opening.carrier not in policy.carriers:
            minutes.reject(
                f"{opening.carrier}: not a carrier the policy allows ({', '.join(policy.carriers)})"
            )
        if opening.length < policy.min_length:
            minutes.reject(
                f"{opening.carrier}: {opening.length} positions, the policy asks for {policy.min_length}"
            )
    shares = [each.share for each in case.looks]
    if sum(shares, Fraction(0)) > 1:
        minutes.reject(f"the looks on record may spend {sum(shares, Fraction(0))} times the budget")
    spent = sum((_spent(bench, number) for number in range(1, len(findings.stages) + 1)), Fraction(0))
    minutes.saw(
        f"the stages that named somebody spent {spent} of {case.budget * bench.look.share}, which is their "
        f"look's share; {len(shares)} looks together may spend {case.budget}; "
        f"the policy allows {policy.max_budget} for one investigation"
    )
    if bench.export is None:
        minutes.left(f"what all investigations together spent of {setup.budget}: no registry was given")


def _spent(bench: _Bench, stage: int) -> Fraction:
    share = bench.dossier.investigation.budget * bench.look.share
    return share if bench.rule == "paper" else share / 2**stage


# ── (9) verdict ─────────────────────────────────────────────────────────────────────────────────────────────


def _check_verdict(bench: _Bench) -> None:
    findings, recorded, minutes = bench.evidence.findings, bench.dossier.verdict, bench.minutes
    tails = {stage.tail for stage in findings.stages}
    if findings.verdict == Verdict.ATTRIBUTE and tails != {"positive"}:
        minutes.reject("the verdict is attribution, and somebody is named on the negative tail")
    if findings.verdict == Verdict.TAMPER and tails != {"negative"}:
        minutes.reject("the verdict is tampering, and somebody is named on the positive tail")
    stages = 1 if bench.rule == "paper" or findings.verdict == Verdict.TAMPER else len(findings.stages)
    if len(findings.stages) > stages:
        minutes.reject(
            f"{len(findings.stages)} stages, the rule {bench.rule} takes one for {findings.verdict}"
        )
    if recorded.verdict != findings.verdict:
        minutes.reject(f"the verdict on record is {recorded.verdict}, the findings say {findings.verdict}")
    if recorded.named != findings.stations:
        minutes.reject(
            f"the record names {', '.join(recorded.named) or 'nobody'}, "
            f"the findings {', '.join(findings.stations) or 'nobody'}"
        )
    if recorded.findings != findings.digest():
        minutes.reject(
            f"the findings hash to {findings.digest().hex()}, the record has {recorded.findings.hex()}"
        )
    minutes.saw(f"{findings.verdict}: {', '.join(findings.stations) or 'nobody is named'}, as on record")
    if findings.verdict in CERTIFIED:
        minutes.left("that nobody else was beyond a threshold: no other row is opened")
        minutes.left(
            "that whoever shaped the suspect knew nothing of an innocent's row: an assumption, A5(a)"
        )


_STEPS: Final = {
    3: _check_openings,
    4: _check_setup,
    5: _check_readouts,
    6: _check_scores,
    7: _check_certificates,
    8: _check_policy,
    9: _check_verdict,
}
