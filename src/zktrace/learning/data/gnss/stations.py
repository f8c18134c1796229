"""A station: where it stands (multipath), what it listens with (antenna), and its receiver (front end).

A station follows from a seed and its number alone, so station 3 is the same among five and among fifty.
With the domain shift off every station is the neutral one, and its samples draw their multipath from the
same law one by one: stations then differ in nothing.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.draws import Floats
from zktrace.learning.data.gnss.settings import GnssConfig, Multipath, ReceiverShift
from zktrace.learning.data.gnss.timebase import ELEMENTS, NANOSECONDS
from zktrace.learning.data.streams import numbered, stream_key

NOISE_DBFS: Final = -56.0  # nominal level of the receiver's noise; rendering refers to it
_MEASURED_GAIN_DB: Final = (0.20, -1.19, 0.22, 0.57)  # rms of the four channels of the real array
_NEIGHBOUR_DB: Final = (-22.0, -15.0)
_DIAGONAL_DB: Final = (-28.0, -20.0)
_PAIRS: Final = (
    ("diagonal", 0, 3),
    ("diagonal", 1, 2),
    ("neighbour", 0, 1),
    ("neighbour", 0, 2),
    ("neighbour", 1, 3),
    ("neighbour", 2, 3),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontEnd:
    """Imperfections of a four-channel receiver; arrays have one entry a channel."""

    gain_db: Floats
    phase: Floats  # turns
    ripple_db: Floats  # peak to peak over frequency
    ripple_period_mhz: Floats
    ripple_phase: Floats  # turns
    tilt_db: Floats  # from the centre to +50 MHz
    skew: Floats  # samples
    roll_off_mhz: float
    iq_gain_db: Floats
    iq_phase: Floats  # radians
    dc: NDArray[np.complex128]  # noise has power 1
    carrier_offset_mhz: float
    noise_dbfs: float

    @classmethod
    def neutral(cls) -> Self:
        """The ideal receiver: only its roll-off, its quantiser and its fixed gain remain."""
        zero = np.zeros(ELEMENTS)
        return cls(
            gain_db=zero,
            phase=zero,
            ripple_db=zero,
            ripple_period_mhz=np.full(ELEMENTS, 40.0),
            ripple_phase=zero,
            tilt_db=zero,
            skew=zero,
            roll_off_mhz=46.0,
            iq_gain_db=zero,
            iq_phase=zero,
            dc=np.zeros(ELEMENTS, np.complex128),
            carrier_offset_mhz=0.0,
            noise_dbfs=NOISE_DBFS,
        )

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        """A receiver of the family the real array belongs to."""
        dc_level = 10 ** (rng.normal(-35, 3, ELEMENTS) / 20)
        return cls(
            gain_db=np.array(_MEASURED_GAIN_DB) + rng.normal(0, 0.4, ELEMENTS),
            phase=rng.uniform(0, 1, ELEMENTS),
            ripple_db=rng.uniform(0.5, 2.5, ELEMENTS),
            ripple_period_mhz=rng.uniform(20, 60, ELEMENTS),
            ripple_phase=rng.uniform(0, 1, ELEMENTS),
            tilt_db=rng.uniform(-1, 1, ELEMENTS),
            skew=rng.normal(0, 0.4, ELEMENTS) / NANOSECONDS,
            roll_off_mhz=float(rng.uniform(44, 48)),
            iq_gain_db=rng.normal(0, 0.3, ELEMENTS),
            iq_phase=np.deg2rad(rng.normal(0, 1, ELEMENTS)),
            dc=dc_level * np.exp(2j * np.pi * rng.uniform(0, 1, ELEMENTS)),
            carrier_offset_mhz=float(rng.normal(0, 2e-3)),
            noise_dbfs=float(rng.uniform(NOISE_DBFS - 2, NOISE_DBFS + 2)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The reflections around a station."""

    k_factor_db: float  # direct power over reflected power, before the spread of single samples
    delay_spread_ns: float

    @classmethod
    def draw(cls, multipath: Multipath, u: Floats) -> Self:
        """From two uniforms, so that settings A and B put a station at the same place in their ranges."""
        (low_k, high_k), (low_d, high_d) = multipath.k_factor_db, multipath.delay_spread_ns
        return cls(
            k_factor_db=low_k + (high_k - low_k) * float(u[0]),
            delay_spread_ns=low_d + (high_d - low_d) * float(u[1]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """A station's share of a receiver shift."""

    gain_db: float
    snr_db: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Receiver:
    """One receiver of the federation."""

    front_end: FrontEnd
    coupling: NDArray[np.complex128]  # [4, 4], symmetric
    site: Site | None  # None: every sample draws its own
    perturbation: Perturbation | None = None

    @classmethod
    def draw(cls, seed: int, number: int, config: GnssConfig) -> Self:
        """Station `number` of a seed."""
        rng = numbered(stream_key(seed, "gnss", "station"), number)
        front_end, coupling = FrontEnd.draw(rng), _coupling(rng)
        site = Site.draw(config.multipath, rng.uniform(0, 1, 2))
        perturbation = _perturbation(config.receiver_shift, float(rng.uniform(0, 1)))
        if not config.domain_shift:
            return cls(
                front_end=FrontEnd.neutral(),
                coupling=nominal_coupling(),
                site=None,
                perturbation=perturbation,
            )
        return cls(front_end=front_end, coupling=coupling, site=site, perturbation=perturbation)


def _perturbation(shift: ReceiverShift | None, u: float) -> Perturbation | None:
    if shift is None:
        return None
    low, high = shift.snr_db
    return Perturbation(gain_db=shift.gain_db, snr_db=low + (high - low) * u)


def _coupling(rng: np.random.Generator) -> NDArray[np.complex128]:
    """Reciprocal coupling of the 2 x 2 array: neighbours stronger than diagonals."""
    matrix = np.eye(ELEMENTS, dtype=np.complex128)
    for kind, i, j in _PAIRS:
        low, high = _DIAGONAL_DB if kind == "diagonal" else _NEIGHBOUR_DB
        amplitude = 10 ** (rng.uniform(low, high) / 20)
        matrix[i, j] = matrix[j, i] = amplitude * np.exp(2j * np.pi * rng.uniform())
    return matrix


def nominal_coupling() -> NDArray[np.complex128]:
    """The middle of both ranges, in phase."""
    matrix = np.eye(ELEMENTS, dtype=np.complex128)
    for kind, i, j in _PAIRS:
        low, high = _DIAGONAL_DB if kind == "diagonal" else _NEIGHBOUR_DB
        matrix[i, j] = matrix[j, i] = 10 ** ((low + high) / 40)
    return matrix
