"""(5) Readout: the suspect is the one on record, and reads as claimed where the judge can read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import CARRIERS, IDENTITY, carrier
from zktrace.court.bench import Bench, Suspect
from zktrace.errors import CannotTell, InputError
from zktrace.evidence import CarrierOpening
from zktrace.models import ModelState, model_digest
from zktrace.readouts.directions import Floats
from zktrace.readouts.reader import SUM_TOLERANCE, Reader, Terms, reader_of
from zktrace.readouts.scores import check_scores, scores_digest
from zktrace.registry.readouts import terms_of
from zktrace.registry.records import Layout

_NEEDS: Final = "reading it takes the release's probes and torch"
_BESIDE: Final = "a suspect is read beside the release's shared model"


def check_readouts(bench: Bench) -> None:
    """Read shared model and suspect again, as far as they are given."""
    minutes, suspect = bench.minutes, bench.suspect
    _check_probes(bench)
    if suspect.shared is not None:
        _check_shared(bench, suspect.shared)
    elif bench.evidence.carriers:
        minutes.left("that the reference readout is the shared model's: the shared model was not given")
    if not suspect.given:
        minutes.left("that the readouts are the suspect's: no suspect was given, nothing was recomputed")
    recorded = bench.dossier.investigation.suspect
    for what, digest in _digests(suspect):
        if digest != recorded:
            minutes.reject(
                f"the {what} given has the digest {digest.hex()}, investigated was {recorded.hex()}"
            )
        minutes.saw(f"the {what} is the one that was investigated ({digest.hex()[:16]}...)")
    if suspect.scores is not None:
        minutes.left("that these answers are the suspect's: nobody vouches for a matrix of scores")
    for opening in bench.evidence.carriers:
        layout = bench.dossier.release.layout(opening.carrier)
        if layout is not None:
            _check_carrier(bench, opening, layout)


def _check_probes(bench: Bench) -> None:
    """Probes that are given are those of the release."""
    known = {each.probes: each.carrier for each in bench.dossier.release.layouts if any(each.probes)}
    for probes in bench.suspect.probes:
        digest = model_digest(probes)
        if digest not in known:
            wanted = " or ".join(each.hex() for each in known) or "none"
            bench.minutes.reject(f"the probes given have the digest {digest.hex()}, released were {wanted}")
        bench.minutes.saw(f"the probes of the carrier {known[digest]} are those of the release")


def _check_shared(bench: Bench, shared: ModelState) -> None:
    digest, wanted = model_digest(shared), bench.dossier.release.model
    if digest != wanted:
        bench.minutes.reject(
            f"the shared model given has the digest {digest.hex()}, released was {wanted.hex()}"
        )
    bench.minutes.saw(f"the shared model is that of the release ({digest.hex()[:16]}...)")


def _digests(suspect: Suspect) -> Iterator[tuple[str, bytes]]:
    if suspect.model is not None:
        yield "suspect", model_digest(suspect.model)
    if suspect.scores is not None:
        yield "matrix of scores", scores_digest(suspect.scores)


def _check_carrier(bench: Bench, opening: CarrierOpening, layout: Layout) -> None:
    """Make reference and readout again.

    The claimed values must be those of the suspect but for rounding, with the claimed reference. A row could
    hide in that rounding, of the readout or of the reference: what step 7 scores beside them is made of the
    judge's own numbers, its own reference included where the shared model was given.
    """
    reader, claimed = reader_of(_terms(bench, opening, layout)), opening.reference_values()
    reference = _own_reference(bench, reader, claimed)
    seen = _seen(bench, reader)
    if seen is None:
        return
    again = reader.readout(seen.projected, claimed)
    scale = reader.scale(seen.projected, again, claimed)
    _agree(bench, reader, again, opening.values(), allowed=seen.tolerance * scale, what="suspect")
    bench.read[opening.carrier] = reader.readout(seen.projected, reference)
    if seen.model:
        bench.recomputed.add(opening.carrier)


def _terms(bench: Bench, opening: CarrierOpening, layout: Layout) -> Terms:
    probes = next((each for each in bench.suspect.probes if model_digest(each) == layout.probes), None)
    beside = bench.suspect.shared if carrier(opening.carrier).beside else None
    return terms_of(
        layout,
        seed=bench.directions[opening.carrier],
        probes=probes,
        shared=beside,
        network=bench.suspect.network,
    )


def _missing(reader: Reader) -> str:
    """What the judge lacks to read a model: of a network its probes, or the model it is read beside."""
    entry, terms = carrier(reader.terms.carrier), reader.terms
    if entry.network and terms.probes is None:
        return _NEEDS
    return _BESIDE if entry.beside and terms.shared is None else ""


def _own_reference(bench: Bench, reader: Reader, claimed: Floats | None) -> Floats | None:
    """The reference as the judge reads it from the shared model, or else the claimed one."""
    shared = bench.suspect.shared
    if claimed is None or shared is None:
        return claimed
    if missing := _missing(reader):
        bench.minutes.left(f"{reader.terms.carrier}: the reference is not recomputed, {missing}")
        return claimed
    own = _projected(reader, shared, known=False)
    allowed = reader.tolerance * float(np.abs(own).max())
    _agree(bench, reader, own, claimed, allowed=allowed, what="shared model")
    return own


def _projected(reader: Reader, model: ModelState, *, known: bool) -> Floats:
    """What a model says. A network that is not `known` to read the shared model may be the wrong one.

    No record names a network: that the one at hand does not fit is said of the judge's means, not of the
    evidence. Once it reads the shared model, a suspect that it cannot read is none that was read.
    """
    try:
        return reader.project(model)
    except InputError as error:
        name = reader.terms.carrier
        if known or not carrier(name).network or reader.terms.profile == "paper":
            raise
        raise CannotTell(
            f"{name}: the network at hand does not read it ({error}); name the release's own (--network), "
            "or leave its probes out"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """What the suspect says by itself."""

    projected: Floats
    model: bool  # read from the suspect; else somebody's matrix
    tolerance: float  # of a readout made of it


def _seen(bench: Bench, reader: Reader) -> _Seen | None:
    """The suspect as the judge can read it in the way of the look that named, if it can."""
    suspect, entry = bench.suspect, carrier(reader.terms.carrier)
    if entry.answers and suspect.scores is not None:
        return _Seen(projected=_answers(bench, reader, suspect.scores), model=False, tolerance=SUM_TOLERANCE)
    if suspect.model is None:
        if suspect.given:
            able = ", ".join(each.name for each in CARRIERS.values() if each.answers)
            bench.minutes.left(f"{entry.name}: not recomputed, scores are read on the carrier {able} alone")
        return None
    if missing := _missing(reader):
        bench.minutes.left(f"{entry.name}: not recomputed, {missing}")
        return None
    if bench.look.alignment == IDENTITY:
        projected = _projected(reader, suspect.model, known=suspect.shared is not None)
        return _Seen(projected=projected, model=True, tolerance=reader.readout_tolerance)
    how = next(each for each in entry.alignments if each.name == bench.look.alignment)
    if how.images or suspect.shared is None:
        other = "images of the release's proxy data" if how.images else "the release's shared model"
        bench.minutes.left(f"{entry.name}: not recomputed, aligning it takes {other}")
        return None
    projected = reader.aligned(suspect.model, how.name, shared=suspect.shared, pool=None)
    return _Seen(projected=projected, model=True, tolerance=reader.aligned_tolerance)


def _answers(bench: Bench, reader: Reader, scores: NDArray[Any]) -> Floats:
    """A matrix of scores of the right shape, as a reader takes it."""
    shape = check_scores(scores).shape
    if shape != (reader.terms.length, reader.terms.dimension):
        bench.minutes.reject(
            f"scores of shape {shape}, the release has {reader.terms.length} probes and "
            f"{reader.terms.dimension} classes"
        )
    return reader.answered(scores)


def _agree(
    bench: Bench, reader: Reader, again: Floats, claimed: Floats, *, allowed: float, what: str
) -> None:
    """The values of the file are those of the model, but for rounding."""
    away = np.abs(again - claimed)
    at = int(np.argmax(away))
    if not away[at] <= allowed:
        bench.minutes.reject(
            f"{reader.terms.carrier}: position {at} reads {float(again[at])!r} in the {what}, "
            f"the evidence has {float(claimed[at])!r}"
        )
    aligned = what == "suspect" and bench.look.alignment != IDENTITY
    how = f" aligned by {bench.look.alignment}," if aligned else ""
    bench.minutes.saw(
        f"{reader.terms.carrier}:{how} {len(claimed)} values of the {what} read again, "
        f"at most {away[at]:.1e} off (allowed {allowed:.1e})"
    )
