"""The judge's protocol. Nothing is believed that can be recomputed; a failure names its step.

(1) Format. The file is canonical, bounded, and its parts are about the same stations and carriers.
(2) Head and inclusion. Checkpoints, where there are any in place of a head, are signed by a log, cosigned by
    as many witnesses as the policy asks for, and of one log. The file's head is the judge's, or is extended
    by it as an exported registry or a consistency proof shows; every entry is under the head; the entries are
    those that are needed and no other. Where an earlier head is given it is from before the investigation,
    and setup, release and enrolments of the accused are under that one.
(3) Openings. Codewords are those of the public keys; seeds are those that setup or reservations promised;
    biases, directions and rows are made from them by the judge, rows with the nonces that the accused proved
    to have drawn themselves, directions with the log just before the release; readouts have the digests that
    were claimed and recorded.
(4) Setup. Names are such as the ledger takes; codes, carriers, profile and rule fit together; the
    investigation came after what it is about and before its verdict; the looks that were taken, the number of
    recipients and the level are those on record. With an exported registry every rule of the ledger is
    replayed, recipients and budgets are recounted, and the accused were sent a copy. Receipts, where there
    are any, were signed by the accused.
(5) Readout. The suspect, where given, has the recorded digest, and reading it in the way of the look that
    named gives the claimed values, as far as this judge can read it. The shared model, where given, is the
    release's and reads as the reference.
(6) Scores. Every claimed score is that of the opened row, stage by stage, exactly.
(7) Certificates. The judge makes every certificate itself; every score is beyond it, and every claim holds,
    also on the judge's own readout; nobody was kept for a later stage.
(8) Budget and policy. What was spent, look by look, was on record beforehand and is no more than the judge's
    policy allows, by itself and together with all before it.
(9) Verdict. It is what the numbers say, and the log has the digest of the findings.

`docs/spec/evidence.md` has each of these as numbered rules; a test breaks them one by one.
"""

from collections.abc import Sequence
from typing import Any, Final

from numpy.typing import NDArray

from zktrace.court.bench import Bench, Suspect
from zktrace.court.dossier import open_dossier
from zktrace.court.heads import Heads
from zktrace.court.judgement import Judgement, Minutes
from zktrace.court.policy import Policy
from zktrace.court.sightings import Brought, sightings
from zktrace.court.steps.budget import check_policy
from zktrace.court.steps.certificates import check_certificates
from zktrace.court.steps.head import check_before, check_head
from zktrace.court.steps.openings import check_openings
from zktrace.court.steps.readouts import check_readouts
from zktrace.court.steps.scores import check_scores
from zktrace.court.steps.setup import check_setup
from zktrace.court.steps.verdict import check_verdict
from zktrace.evidence import Evidence
from zktrace.models import ModelState
from zktrace.readouts.network import Network
from zktrace.registry.log import Extension, Head
from zktrace.registry.signing import Receipt

_STEPS: Final = {
    3: check_openings,
    4: check_setup,
    5: check_readouts,
    6: check_scores,
    7: check_certificates,
    8: check_policy,
    9: check_verdict,
}


def judge(
    evidence: bytes,
    *,
    head: Head | None = None,
    checkpoints: Sequence[bytes] = (),
    policy: Policy | None = None,
    suspect: ModelState | None = None,
    scores: NDArray[Any] | None = None,
    shared: ModelState | None = None,
    probes: Sequence[ModelState] = (),
    network: Network | None = None,
    export: Sequence[bytes] | None = None,
    extensions: Sequence[Extension] = (),
    before: Head | None = None,
    before_checkpoint: bytes | None = None,
    receipts: Sequence[Receipt] = (),
    minutes: Minutes | None = None,
) -> Judgement:
    """Check an evidence file against a head that the judge got elsewhere, typed or as `checkpoints`.

    `suspect` is the model that the case is about, or `scores` what it answered if it was only queried;
    `shared` the release's model and `probes` what its networks are read by, for which torch is loaded, by
    `network` if it is none of this package's;
    `export` all entries of the registry, `extensions` consistency proofs between heads, and `before` a head
    that somebody witnessed before the suspect was known, or `before_checkpoint` a checkpoint of that time;
    `receipts` what stations signed for.
    Steps are written into `minutes` as they pass.

    Raises MalformedEvidence for a file that cannot be read, EvidenceRejected for one that does not hold, and
    CannotTell where nothing shows that the judge's head and the file's are of one log.
    """
    minutes = Minutes() if minutes is None else minutes
    conditions = Policy() if policy is None else policy
    brought = Brought(head=head, checkpoints=checkpoints, before=before, before_checkpoint=before_checkpoint)
    with minutes.step(1):
        parsed = Evidence.from_bytes(evidence)
        minutes.saw(f"canonical JSON of {len(evidence)} bytes, {len(parsed.entries)} entries of the log")
    found = sightings(brought, conditions, minutes)
    with minutes.step(2):
        seen = found.heads(minutes)
        heads = Heads(
            own=seen.own, before=seen.before, export=export, extensions=extensions, others=seen.others
        )
        check_head(parsed, heads, minutes)
        dossier = open_dossier(parsed)
        check_before(parsed, dossier, heads, minutes)
    bench = Bench(
        evidence=parsed,
        policy=conditions,
        suspect=Suspect(model=suspect, scores=scores, shared=shared, probes=tuple(probes), network=network),
        export=None if export is None else export[: seen.own.size],
        before=seen.before,
        checkpoints=len(checkpoints),
        receipts=receipts,
        heads=heads,
        minutes=minutes,
        dossier=dossier,
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
        total=bench.total,
        recipients=dossier.investigation.recipients,
        steps=minutes.steps(),
    )
