"""A judge's one call: evidence, a head, and whatever else is at hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.court import Judgement, Minutes, Policy
from zktrace.court import judge as examine
from zktrace.evidence import Evidence
from zktrace.evidence.file import FILE_LIMIT
from zktrace.front.given import Model, NetworkGiven, as_network, as_state, check_kind
from zktrace.primitives.files import read_bounded
from zktrace.readouts.scores import read_matrix
from zktrace.registry.export import read_export
from zktrace.registry.log import Extension, Head
from zktrace.registry.signing import FILE_LIMIT as RECEIPT_LIMIT
from zktrace.registry.signing import Receipt
from zktrace.transparency.note import NOTE_LIMIT


def judge(
    evidence: Evidence | bytes | str | Path,
    *,
    head: Head | str | None = None,
    checkpoints: Sequence[str | Path | bytes] = (),
    policy: Policy | None = None,
    suspect: Model | None = None,
    scores: str | Path | NDArray[Any] | None = None,
    shared: Model | None = None,
    probes: Sequence[Model] = (),
    network: NetworkGiven | None = None,
    registry: str | Path | None = None,
    extensions: Sequence[Extension] = (),
    before: Head | str | None = None,
    before_checkpoint: str | Path | bytes | None = None,
    receipts: Sequence[Receipt | str | Path | bytes] = (),
    minutes: Minutes | None = None,
) -> Judgement:
    """Check an accusation offline, against a head that the judge got elsewhere.

    Instead of one it may have `checkpoints`: they are believed as far as the policy's `logs`, `witnesses` and
    `min_witnesses` say. `suspect` is the model that the case is about, or `scores` what it answered; `shared`
    the release's model, `probes` what its networks are read by (needs torch), `network` what makes the module
    of one that is none of this package's, `registry` an exported registry, `extensions` proofs that one head
    extends another, `before` a head that somebody witnessed before the suspect was known, or
    `before_checkpoint` one of these, and `receipts` what stations signed for their copies.

    Raises MalformedEvidence for a file that cannot be read, EvidenceRejected for one that does not hold, and
    CannotTell where nothing shows that the judge's head and the file's are of one log.
    """
    return examine(
        _bytes(evidence),
        head=None if head is None else _head(head),
        checkpoints=[_note(each) for each in checkpoints],
        policy=None if policy is None else check_kind(policy, Policy, "a policy"),
        suspect=None if suspect is None else as_state(suspect),
        scores=_scores(scores),
        shared=None if shared is None else as_state(shared),
        probes=[as_state(each) for each in probes],
        network=as_network(network),
        export=None if registry is None else [each.to_bytes() for each in read_export(Path(registry))[0]],
        extensions=extensions,
        before=None if before is None else _head(before),
        before_checkpoint=None if before_checkpoint is None else _note(before_checkpoint),
        receipts=[_receipt(each) for each in receipts],
        minutes=minutes,
    )


def _bytes(evidence: Evidence | bytes | str | Path) -> bytes:
    if isinstance(evidence, Evidence):
        return evidence.to_bytes()
    given = check_kind(evidence, (bytes, str, Path), "evidence")
    return given if isinstance(given, bytes) else read_bounded(Path(given), limit=FILE_LIMIT)


def _head(head: Head | str) -> Head:
    if isinstance(head, Head):
        return head
    return Head.from_text(check_kind(head, str, "a head").strip())


def _note(checkpoint: str | Path | bytes) -> bytes:
    given = check_kind(checkpoint, (bytes, str, Path), "a checkpoint")
    return given if isinstance(given, bytes) else read_bounded(Path(given), limit=NOTE_LIMIT)


def _receipt(receipt: Receipt | str | Path | bytes) -> Receipt:
    given = check_kind(receipt, (Receipt, bytes, str, Path), "a receipt")
    if isinstance(given, Receipt):
        return given
    data = given if isinstance(given, bytes) else read_bounded(Path(given), limit=RECEIPT_LIMIT)
    return Receipt.from_bytes(data)


def _scores(scores: str | Path | NDArray[Any] | None) -> NDArray[Any] | None:
    if scores is None or isinstance(scores, np.ndarray):
        return scores
    return read_matrix(Path(check_kind(scores, (str, Path), "scores")))
