"""The clock of a recording, and sums of complex lines on a grid.

100 MHz complex sampling of 10.24 us at 1575.42 MHz. A waveform is made 64 samples longer than it is kept:
delays are circular, and what wraps round falls into the part that is dropped. Frequencies are in MHz, times
in samples of 10 ns unless a name says otherwise.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.draws import Floats

Complexes = NDArray[np.complex64]

RATE_MHZ: Final = 100.0
KEPT: Final = 1024  # samples of a recording
LEAD: Final = 64  # made and dropped
LENGTH: Final = LEAD + KEPT
ELEMENTS: Final = 4
BAND_MHZ: Final = 45.0  # waveforms stay within +-45 MHz
NANOSECONDS: Final = 10.0  # of one sample

TIME: Final = np.arange(LENGTH, dtype=np.float64)
FREQUENCY_MHZ: Final = np.fft.fftfreq(LENGTH, 1 / RATE_MHZ)  # of each line of a spectrum

_FINE: Final = 32
_COARSE: Final = LENGTH // _FINE


def cis(cycles: Floats) -> Complexes:
    """exp(2 pi j cycles): whole turns are removed in float64, the rest is float32."""
    angle = (2 * np.pi * (cycles - np.rint(cycles))).astype(np.float32)
    out = np.empty(angle.shape, np.complex64)
    np.cos(angle, out=out.real)
    np.sin(angle, out=out.imag)
    return out


def _lines(weights: Complexes, step: Floats, coarse: Floats) -> Complexes:
    """sum_p weights[n, m, p] exp(2 pi j step[n, p] k) for k = 32 a + b, as one small product a sample.

    exp(2 pi j step (32 a + b)) has rank one in (a, b), so only a handful of exponentials is evaluated.
    """
    rows, outputs, lines = weights.shape
    left = cis(step[:, None, :] * coarse[None, :, None])  # [n, a, p]
    right = cis(step[:, :, None] * np.arange(_FINE))  # [n, p, b]
    table = (weights[:, :, None, :] * left[:, None]).reshape(rows, outputs * _COARSE, lines)
    total: Complexes = np.matmul(table, right)
    return total.reshape(rows, outputs, LENGTH)


def tones(weights: Complexes, cycles_per_sample: Floats) -> Complexes:
    """Complex tones in time: [n, m, p] amplitudes and [n, p] frequencies give [n, m, LENGTH]."""
    return _lines(weights, cycles_per_sample, _FINE * np.arange(_COARSE, dtype=np.float64))


def delays(weights: Complexes, delay_samples: Floats) -> Complexes:
    """Transfer function of delayed paths on the lines of a spectrum: [n, m, p], [n, p] -> [n, m, LENGTH]."""
    block = np.arange(_COARSE, dtype=np.float64)
    coarse = _FINE * np.where(block < _COARSE // 2, block, block - _COARSE)  # negative frequencies last
    return _lines(weights, -delay_samples / LENGTH, coarse)


def unit_power(signal: Complexes) -> Complexes:
    """Each row scaled to mean power 1."""
    power = np.mean(signal.real**2 + signal.imag**2, axis=-1, keepdims=True, dtype=np.float64)
    return signal * (1 / np.sqrt(power)).astype(np.float32)


def centre(u: Floats, width_mhz: Floats) -> Floats:
    """A carrier offset that keeps a band of this width within +-45 MHz."""
    room = np.maximum(BAND_MHZ - width_mhz / 2, 0)
    return (2 * u - 1) * room


def decibel(level: Floats) -> Floats:
    """Amplitude of a level in dB."""
    amplitude: Floats = np.exp(level * (np.log(10) / 20))
    return amplitude
