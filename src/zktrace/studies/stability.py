"""`thm:score-stability` beside a student of features: what it promised, and what happened."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.stability import (
    bad_fraction,
    distilled_flip_bound,
    measured_flips,
    most_flips,
    probe_residuals,
    survival,
)
from zktrace.codes import unpack
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState
from zktrace.readouts.features import FeatureReader
from zktrace.studies.ground import Ground
from zktrace.studies.tracing import BUDGET


def stability(ground: Ground, suspect: ModelState) -> dict[str, Any]:
    """Whether the sufficient condition of `thm:score-stability` holds, three ways of counting bits.

    `budget`: k of `eq:score-k` at the margin that makes it least. `residuals`: the probes whose feature
    moved by at least their margin. `projected`: those whose own projection did. `differing` is the part of
    the bits that are not the row's, beside what `prop:kd-robust` says of it at the best margin.
    """
    reader = next(
        x for x in map(ground.release.reader, ground.release.carriers) if isinstance(x, FeatureReader)
    )
    with single_threaded():
        before, after = (reader.features(each, reader.images) for each in (ground.copies[0], suspect))
    margins, read = reader.read_features(before), reader.read_features(after)
    residuals, projected = probe_residuals(before, after), np.abs(read - margins)
    code = ground.release.code(reader.terms.carrier)
    row = unpack(code.rows([ground.members[0]]), code.length)[0]
    threshold = candidate_threshold(
        length=code.length,
        recipients=ground.federation.preset.federation.clients,
        level=BUDGET,
        tails=2,
    )
    word, biases = (margins > 0).astype(np.uint8), code.biases.probabilities()
    tried = [float(mu) for mu in np.quantile(np.abs(margins), np.linspace(0.01, 0.99, 99)) if mu > 0]
    least = min(most_flips(margins=margins, residuals=residuals, mu=mu) for mu in tried)
    differing = min(
        distilled_flip_bound(bad=bad_fraction(row=row, margins=margins, mu=mu), residuals=residuals, mu=mu)
        for mu in tried
    )
    ways: dict[str, int | NDArray[np.bool_]] = {
        "budget": least,
        "residuals": measured_flips(margins=margins, residuals=residuals),
        "projected": measured_flips(margins=margins, residuals=projected),
    }
    found: dict[str, Any] = {
        "threshold": threshold,
        "margin": float(np.median(np.abs(margins))),
        "residual": float(np.median(residuals)),
        "flipped": int(((read > 0) != (margins > 0)).sum()),
    }
    for name, changed in ways.items():
        one = survival(row=row, word=word, biases=biases, threshold=threshold, changed=changed)
        found |= {"score": one.score, name: {"changed": one.changed, "holds": one.survives}}
    after_word = (read > 0).astype(np.uint8)
    found["differing"] = {"bound": differing, "found": float((after_word != row).mean())}
    student = survival(row=row, word=after_word, biases=biases, threshold=threshold, changed=0)
    return found | {"student_score": student.score, "student_beyond": student.survives}
