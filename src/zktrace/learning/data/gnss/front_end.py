"""What receivers do to the field: filter, IQ imbalance, DC, gain, quantiser."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.draws import Floats, Ints
from zktrace.learning.data.gnss.stations import FrontEnd, Receiver
from zktrace.learning.data.gnss.timebase import FREQUENCY_MHZ, RATE_MHZ, Complexes

BITS: Final = 14
_STEPS: Final = 1 << (BITS - 1)  # full scale is 1
LOUD: Final = 1e4  # input power over noise (40 dB) above which the gain steps down
STEP_DB: Final = -12.0


def response(front_end: FrontEnd) -> NDArray[np.complex128]:
    """g_m h_m on the lines of the spectrum, [4, LENGTH]."""
    f = FREQUENCY_MHZ
    wave = np.cos(2 * np.pi * (f / front_end.ripple_period_mhz[:, None] + front_end.ripple_phase[:, None]))
    level_db = front_end.gain_db[:, None] + front_end.ripple_db[:, None] / 2 * wave
    level_db = level_db + front_end.tilt_db[:, None] * (f / (RATE_MHZ / 2))
    roll_off = 1 / np.sqrt(1 + (f / front_end.roll_off_mhz) ** 24)
    turns = front_end.phase[:, None] - front_end.skew[:, None] * (f / RATE_MHZ)
    out: NDArray[np.complex128] = 10 ** (level_db / 20) * roll_off * np.exp(2j * np.pi * turns)
    return out


def iq_imbalance(front_end: FrontEnd) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """(alpha, beta) with y = alpha x + beta conj(x): I' = c I, Q' = (Q cos phi + I sin phi) / c."""
    c = 10 ** (front_end.iq_gain_db / 40)
    turn = np.exp(1j * front_end.iq_phase)
    return (c + turn / c) / 2, (c - np.conj(turn) / c) / 2


def quantise(signal: Complexes) -> None:
    """14 bits between -1 and 1, in place; what is beyond is clipped."""
    parts = signal.view(np.float32)
    parts *= _STEPS
    np.rint(parts, out=parts)
    np.clip(parts, -_STEPS, _STEPS - 1, out=parts)
    parts *= np.float32(1 / _STEPS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontEnds:
    """The receivers of all stations as arrays, first axis the station."""

    response: Complexes  # [S, 4, LENGTH]
    coupling: Complexes  # [S, 4, 4]
    sites: Floats  # [S, 2]: K in dB and delay spread in ns, NaN where samples draw their own
    alpha: NDArray[np.complex128]  # [S, 4]
    beta: NDArray[np.complex128]  # [S, 4]
    dc: NDArray[np.complex128]  # [S, 4]
    carrier_offset: Floats  # [S], cycles a sample
    scale: Floats  # [S]: from units of noise to full scale
    extra_noise: Floats  # [S]: added noise over received power

    @classmethod
    def of(cls, stations: Sequence[Receiver]) -> Self:
        """Everything that is computed once a station."""
        ends = [station.front_end for station in stations]
        balance = [iq_imbalance(end) for end in ends]
        shifts = [station.perturbation for station in stations]
        gain_db = [0.0 if shift is None else shift.gain_db for shift in shifts]
        level_db = [end.noise_dbfs + gain for end, gain in zip(ends, gain_db, strict=True)]
        nowhere = (np.nan, np.nan)
        sites = [
            nowhere if station.site is None else (station.site.k_factor_db, station.site.delay_spread_ns)
            for station in stations
        ]
        return cls(
            response=np.array([response(end) for end in ends], np.complex64),
            coupling=np.array([station.coupling for station in stations], np.complex64),
            sites=np.array(sites, np.float64),
            alpha=np.array([alpha for alpha, _ in balance]),
            beta=np.array([beta for _, beta in balance]),
            dc=np.array([end.dc for end in ends]),
            carrier_offset=np.array([end.carrier_offset_mhz / RATE_MHZ for end in ends]),
            scale=10 ** (np.array(level_db) / 20),
            extra_noise=np.array([0.0 if s is None else 10 ** (-s.snr_db / 10) for s in shifts]),
        )

    def noise_power(self, station: Ints, jammer: Floats) -> Floats:
        """1, or with a receiver shift 1 + (jammer + 1) / SNR."""
        return 1 + (jammer + 1) * self.extra_noise[station]

    def digitise(self, field: Complexes, station: Ints, input_power: Floats) -> Complexes:
        """From volts in units of noise ([n, 4, KEPT], overwritten) to numbers between -1 and 1."""
        step = np.where(input_power > LOUD, 10 ** (STEP_DB / 20), 1.0)
        gain = (self.scale[station] * step)[:, None]
        mirror = np.conj(field)
        mirror *= (self.beta[station] * gain).astype(np.complex64)[:, :, None]
        field *= (self.alpha[station] * gain).astype(np.complex64)[:, :, None]
        field += mirror
        field += (self.dc[station] * gain).astype(np.complex64)[:, :, None]
        quantise(field)
        return field
