"""(5) Readout: the suspect is the one on record, and reads as claimed where the judge can read it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zktrace.carriers import CARRIERS, IDENTITY
from zktrace.evidence import CarrierOpening
from zktrace.judge.bench import Bench, Suspect
from zktrace.judge.readers import ALIGNED_TOLERANCE, SUM_TOLERANCE, Project, Wanted
from zktrace.models import ModelState, model_digest
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.directions import Floats
from zktrace.readouts.scores import check_scores, scores_digest
from zktrace.registry.records import Layout


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
    wanted = _wanted(bench, opening, layout)
    project, claimed = bench.readers(wanted), opening.reference_values()
    reference = _own_reference(bench, wanted, project, claimed)
    seen = _seen(bench, wanted, project)
    if seen is None:
        return
    again = wanted.readout(seen.projected, claimed)
    scale = wanted.scale(seen.projected, again, claimed)
    _agree(bench, wanted, again, opening.values(), allowed=seen.tolerance * scale, what="suspect")
    bench.read[opening.carrier] = wanted.readout(seen.projected, reference)
    if seen.model:
        bench.recomputed.add(opening.carrier)


def _wanted(bench: Bench, opening: CarrierOpening, layout: Layout) -> Wanted:
    probes = next((each for each in bench.suspect.probes if model_digest(each) == layout.probes), None)
    return Wanted(
        carrier=opening.carrier,
        seed=bench.directions[opening.carrier],
        length=opening.length,
        layout=layout,
        probes=probes,
    )


def _own_reference(
    bench: Bench, wanted: Wanted, project: Project | None, claimed: Floats | None
) -> Floats | None:
    """The reference as the judge reads it from the shared model, or else the claimed one."""
    shared = bench.suspect.shared
    if claimed is None or shared is None:
        return claimed
    if project is None:
        bench.minutes.left(f"{wanted.carrier}: the reference is not recomputed, {_needs(wanted)}")
        return claimed
    own = project(shared)
    allowed = wanted.tolerance * float(np.abs(own).max())
    _agree(bench, wanted, own, claimed, allowed=allowed, what="shared model")
    return own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """What the suspect says by itself."""

    projected: Floats
    model: bool  # read from the suspect; else somebody's matrix
    tolerance: float  # of a readout made of it


def _seen(bench: Bench, wanted: Wanted, project: Project | None) -> _Seen | None:
    """The suspect as the judge can read it in the way of the look that named, if it can."""
    suspect, carrier = bench.suspect, wanted.carrier
    if CARRIERS[carrier].answers and suspect.scores is not None:
        scores = check_scores(suspect.scores)
        if scores.shape != (wanted.length, wanted.layout.dimension):
            bench.minutes.reject(
                f"scores of shape {scores.shape}, the release has {wanted.length} probes and "
                f"{wanted.layout.dimension} classes"
            )
        return _Seen(projected=scores.reshape(-1), model=False, tolerance=SUM_TOLERANCE)
    if suspect.model is None:
        if suspect.given:
            bench.minutes.left(f"{carrier}: not recomputed, scores are read on the output carrier alone")
        return None
    why = _needs(wanted) if project is None else None
    if project is not None and bench.look.alignment == IDENTITY:
        return _Seen(projected=project(suspect.model), model=True, tolerance=wanted.readout_tolerance)
    if project is not None and not CARRIERS[carrier].network and suspect.shared is not None:
        aligned = align_scales(suspect.model, suspect.shared)
        return _Seen(projected=project(aligned), model=True, tolerance=ALIGNED_TOLERANCE)
    if why is None:
        network = CARRIERS[carrier].network
        other = "images of the release's proxy data" if network else "the release's shared model"
        why = f"aligning it takes {other}"
    bench.minutes.left(f"{carrier}: not recomputed, {why}")
    return None


def _needs(wanted: Wanted) -> str:
    """What is missing where there is no reader."""
    return "reading it takes " + ("torch" if wanted.probes is not None else "the release's probes and torch")


def _agree(
    bench: Bench, wanted: Wanted, again: Floats, claimed: Floats, *, allowed: float, what: str
) -> None:
    """The values of the file are those of the model, but for rounding."""
    away = np.abs(again - claimed)
    at = int(np.argmax(away))
    if not away[at] <= allowed:
        bench.minutes.reject(
            f"{wanted.carrier}: position {at} reads {float(again[at])!r} in the {what}, "
            f"the evidence has {float(claimed[at])!r}"
        )
    aligned = what == "suspect" and bench.look.alignment != IDENTITY
    how = f" aligned by {bench.look.alignment}," if aligned else ""
    bench.minutes.saw(
        f"{wanted.carrier}:{how} {len(claimed)} values of the {what} read again, at most {away[at]:.1e} off "
        f"(allowed {allowed:.1e})"
    )
