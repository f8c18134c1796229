"""Whether a model descends from marked copies: then it carries rows, and its readings name innocents.

Rows belong to stations, not to releases. Stations that train on from their copies, and a server that averages
what they send back, make a shared model with everybody's row in it: read under the earlier release, it names
everybody although nobody leaked. So a new model is read under every release on record, and refused if the
rows of those enrolled show in it, one of them or all of them together.

    one         the largest score, in deviations of an innocent's
    together    the sum of the squares of all scores; among N independent rows it is about chi-squared

Both are screens, not certificates: a clean model is refused with a probability of about LEVEL.
"""

import math
from statistics import NormalDist
from typing import Final

import numpy as np
from flint import arb

from zktrace.codes.readings import deviations
from zktrace.errors import InputError, Refused
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.network import Network
from zktrace.readouts.reader import Reader
from zktrace.registry.ledger import Ledger
from zktrace.registry.workspace import Home
from zktrace.releases.opened import OpenRelease

LEVEL: Final = 1e-3  # of all readings together


def check_unmarked(home: Home, ledger: Ledger, model: ModelState, network: Network | None = None) -> None:
    """Refused if the model carries rows under an earlier release."""
    opened = [OpenRelease.of(home, name, ledger=ledger, network=network) for name in ledger.releases]
    readings = [(each, name) for each in opened for name in each.carriers]
    if not readings or not ledger.by_row:
        return
    for release, name in readings:
        reader = _reader(release, name)
        try:
            values = reader.read(model)
        except InputError:
            continue  # another architecture: nothing of that release can be read from it
        code = release.code(name)
        rows = code.rows(range(len(ledger.by_row)))
        if carries(deviations(values, code.biases, rows, release.rule), LEVEL / len(readings)):
            raise Refused(
                f"this model carries rows of copies of {release.name} (read on the {name} carrier): it was "
                "trained on from marked copies, and tracing it would name innocents. Train on from the "
                f"shared model of {release.name} instead, or release it in a workspace of its own "
                "(zktrace init)"
            )


def _reader(release: OpenRelease, name: str) -> Reader:
    """What reads an earlier release; Refused if its files are lost, for then nobody can tell."""
    try:
        return release.reader(name)
    except InputError as error:
        raise Refused(
            f"whether this model carries rows of copies of {release.name} cannot be told without its files"
            f": {error}. Put them back, or release the model in a workspace of its own (zktrace init)"
        ) from error


def carries(scores: Floats, level: float) -> bool:
    """Whether scores, in deviations, are not those of rows that have nothing to do with the readout."""
    count = len(scores)
    one = NormalDist().inv_cdf(1.0 - level / (4 * count))
    return bool(np.abs(scores).max() > one or (scores**2).sum() > chi_squared_above(count, level / 2))


def chi_squared_above(degrees: int, level: float) -> float:
    """What a chi-squared sum exceeds with probability `level`: by bisection of the upper tail."""
    low, high = float(degrees), degrees + 20.0 * math.sqrt(degrees) + 200.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        tail = float(arb(middle / 2).gamma_upper(arb(degrees) / 2, regularized=1).mid())
        low, high = (middle, high) if tail > level else (low, middle)
    return high
