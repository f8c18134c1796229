"""Which credentials are represented in a shared model: the public identity marks, read from its scales.

A match is statistical evidence of a codeword, not of its holder: public marks can be copied. Needs no torch.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zktrace.certificates.identity import agreement, cross_talk, radius_check
from zktrace.errors import InputError
from zktrace.models import model_digest, open_model
from zktrace.readouts.identity import DEFAULT_SEED, IdentityCodebook
from zktrace.readouts.runs import RunFacts
from zktrace.readouts.scales import layer_sizes
from zktrace.registry.roster import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class StationMark:
    """One station's component in a model."""

    station: str
    agreement: float  # with its own codeword
    best_other: float
    attributed: str | None  # None: several codewords agree equally
    distance: int  # bits that differ from its own codeword
    within_radius: bool  # the attribution is proved by the distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Every station's component in a model against every codeword."""

    model: str
    digest: str
    bits: int
    stations: tuple[StationMark, ...]
    matrix: tuple[tuple[float, ...], ...]  # component of station i against codeword j
    attribution: float
    self_agreement: float
    cross_talk: float
    codeword_distance: int

    def as_json(self) -> dict[str, object]:
        """For a machine; the matrix stays in the report."""
        return {
            "stations": [
                {
                    "station": each.station,
                    "agreement": each.agreement,
                    "best_other": each.best_other,
                    "attributed": each.attributed,
                    "distance": each.distance,
                    "within_radius": each.within_radius,
                }
                for each in self.stations
            ],
            "attribution": self.attribution,
            "self_agreement": self.self_agreement,
            "cross_talk": self.cross_talk,
            "codeword_distance": self.codeword_distance,
        }


def read_attribution(model: Path, who: Roster, *, seed: bytes = b"", raw: bool = False) -> Attribution:
    """Components of all stations in a model file, against the codewords of their public keys."""
    if len(who.keys) < 2:
        raise InputError("attribution compares at least two stations: give --public twice or more")
    arrays = open_model(model)
    packed = np.array([list(key.codeword(who.bits)) for key in who.keys], dtype=np.uint8)
    words = np.unpackbits(packed, axis=1, count=who.bits)
    book = IdentityCodebook(
        stations=len(who.keys),
        bits=who.bits,
        layers=layer_sizes(arrays),
        raw=raw,
        seed=seed or DEFAULT_SEED,
        rows=who.rows,
    )
    extracted = book.extract(arrays)
    matrix, check = agreement(extracted, words), radius_check(extracted, words)
    stations = tuple(
        StationMark(
            station=name,
            agreement=float(matrix[i, i]),
            best_other=float(np.delete(matrix[i], i).max()),
            attributed=None if check.attributed[i] is None else who.names[check.attributed[i] or 0],
            distance=check.distances[i],
            within_radius=check.within[i],
        )
        for i, name in enumerate(who.names)
    )
    return Attribution(
        model=model.name,
        digest=model_digest(arrays).hex(),
        bits=who.bits,
        stations=stations,
        matrix=tuple(tuple(row) for row in matrix.tolist()),
        attribution=check.correct / len(who.names),
        self_agreement=float(matrix.diagonal().mean()),
        cross_talk=cross_talk(matrix),
        codeword_distance=check.min_distance,
    )


def check_run(run: RunFacts | None, who: Roster, *, raw: bool) -> list[str]:
    """Refuse to read a run's model as another run's; warn of other keys, which read nothing."""
    if run is None or not run.marked:
        return []
    run.check_bits(who.bits, "not with")
    if raw and not run.raw:
        raise InputError(f"{run.spec}: marks of this run are read less their layers' means: no --raw")
    if len(who.keys) != run.clients:
        raise InputError(f"{run.spec}: a run of {run.clients} stations, and {len(who.keys)} keys are given")
    if run.trained_with([key.codeword(who.bits) for key in who.keys]):
        return []
    return ["these are not the keys of the run, or not in its order: nothing can be read for the others"]
