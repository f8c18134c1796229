"""(5) Readout: the suspect is the one on record, and reads as claimed where the judge can read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.evidence import CarrierOpening
from zktrace.judge.bench import Bench, Suspect
from zktrace.models import ModelState, model_digest
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import OutputReader, scores_digest
from zktrace.readouts.weight import Profile, WeightReader
from zktrace.registry.records import IDENTITY, Layout

READOUT_TOLERANCE: Final = 1e-9  # of the largest projection: what the order of a float sum can move
ALIGNED_TOLERANCE: Final = 1e-6  # the same, through an alignment


def check_readouts(bench: Bench) -> None:
    """Read shared model and suspect again, as far as they are given."""
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


def _check_shared(bench: Bench, shared: ModelState) -> None:
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
        projected = _reader(bench.directions[opening.carrier], opening, layout).project(shared)
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


def _read_again(bench: Bench, opening: CarrierOpening, layout: Layout) -> _Again | None:
    """The readout as the judge can make it, if it can."""
    suspect, minutes = bench.suspect, bench.minutes
    if opening.carrier == "output" and suspect.scores is not None:
        return _from_scores(bench.directions[opening.carrier], opening, layout, suspect.scores)
    if opening.carrier != "weight" or suspect.model is None:
        minutes.left(f"{opening.carrier}: not recomputed here, reading it takes the probes and torch")
        return None
    if bench.look.alignment == IDENTITY:
        return _from_scales(
            bench.directions[opening.carrier], opening, layout, suspect.model, READOUT_TOLERANCE
        )
    if suspect.shared is None:
        minutes.left(
            f"{opening.carrier}: not recomputed, aligning the suspect takes the release's shared model"
        )
        return None
    aligned = align_scales(suspect.model, suspect.shared)
    return _from_scales(bench.directions[opening.carrier], opening, layout, aligned, ALIGNED_TOLERANCE)


def _reader(seed: bytes, opening: CarrierOpening, layout: Layout) -> WeightReader:
    return WeightReader(
        seed=seed,
        length=opening.length,
        layers=layout.layers,
        profile=cast(Profile, layout.profile),
        reference=opening.reference_values(),
    )


def _from_scales(
    seed: bytes, opening: CarrierOpening, layout: Layout, arrays: Arrays, tolerance: float
) -> _Again:
    reference = opening.reference_values()
    projected = _reader(seed, opening, layout).project(arrays)
    again = projected if reference is None else projected - reference
    scale = max(float(np.abs(projected).max()), 0.0 if reference is None else float(np.abs(reference).max()))
    return _Again(values=again, scale=scale, tolerance=tolerance)


def _from_scores(seed: bytes, opening: CarrierOpening, layout: Layout, scores: NDArray[Any]) -> _Again:
    reference = opening.reference_values()
    if reference is None:
        raise InputError("the output carrier has no reference")
    reader = OutputReader(seed=seed, length=opening.length, classes=layout.dimension, reference=reference)
    scale = float(np.abs(reference).max())
    return _Again(values=reader.read_scores(scores), scale=scale, tolerance=READOUT_TOLERANCE)


def _agree(bench: Bench, carrier: str, again: _Again, claimed: Floats, *, what: str) -> None:
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
