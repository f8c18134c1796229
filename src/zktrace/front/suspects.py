"""A suspect as it is given to the front door, read on a release; and what is kept of its case."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, Refused
from zktrace.front.case import TracedCase, free_case_path, keep_leads, tried
from zktrace.front.given import Model, as_state, check_kind
from zktrace.guarding import fitting
from zktrace.models import ModelState, model_digest
from zktrace.primitives.files import write_atomic
from zktrace.readouts.readout import Reading
from zktrace.readouts.scores import read_matrix, scores_digest
from zktrace.registry.records import InvestigationRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease
from zktrace.tracing import Case


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadSuspect:
    """A suspect that was read."""

    digest: bytes
    reading: Reading
    source: Path | None
    scores: bool


def read_suspect(
    opened: OpenRelease,
    suspect: Model | None,
    scores: str | Path | NDArray[Any] | None,
    carriers: Sequence[str] | None,
    *,
    align: bool,
    strict: bool = False,
    wanted: InvestigationRecord | None = None,
) -> ReadSuspect:
    """A suspect and its readouts; none but the one that is wanted is read."""
    if (suspect is None) == (scores is None):
        raise InputError("name the suspect's file or give --scores, one of them")
    if scores is not None:
        check_kind(scores, (str, Path, np.ndarray), "scores")
        if carriers is not None and tuple(carriers) != (opened.asked,):
            raise InputError(f"scores are read on the {opened.asked} carrier alone")
        matrix = scores if isinstance(scores, np.ndarray) else read_matrix(Path(scores))
        source = None if isinstance(scores, np.ndarray) else Path(scores)
        digest = _checked(scores_digest(matrix), source, wanted)
        return ReadSuspect(digest=digest, reading=opened.read_answers(matrix), source=source, scores=True)
    source = Path(suspect) if isinstance(suspect, str | Path) else None
    state = as_state(cast(Model, suspect))
    digest = _checked(model_digest(state), source, wanted)
    reading = opened.read(state, carriers, align=align, strict=strict)
    if opened.guarded:
        reading = replace(reading, remarks=(*reading.remarks, *_fit(opened, state)))
    return ReadSuspect(digest=digest, reading=reading, source=source, scores=False)


def _fit(opened: OpenRelease, state: ModelState) -> tuple[tuple[str, str], ...]:
    """Which broadcast of a guarded federation a suspect fits best, if that can be told: for people."""
    found = fitting(opened, state)[:1]
    return tuple(
        ("spread", f"fits broadcast {each.number} ({each.label}) best, {each.distance:.2g} deviations away")
        for each in found
    )


def _checked(digest: bytes, source: Path | None, wanted: InvestigationRecord | None) -> bytes:
    if wanted is not None and digest != wanted.suspect:
        what = source or "the suspect"
        raise Refused(f"{what}: its digest is {digest.hex()}, on record is {wanted.suspect.hex()}")
    return digest


def kept_case(home: Home, case: Case, read: ReadSuspect) -> TracedCase:
    """The case of a suspect, its evidence in cases/, its leads beside the code key."""
    path, data = free_case_path(home, case.place), case.evidence.to_bytes()
    warnings = tried(lambda: write_atomic(path, data, secret=True))
    leads, failed = keep_leads(home, case)
    return TracedCase(
        case=case,
        home=home,
        path=None if warnings else path,
        leads=leads,
        unread=read.reading.left,
        remarks=read.reading.remarks,
        warnings=(*warnings, *failed),
        source=read.source,
        scores=read.scores,
    )
