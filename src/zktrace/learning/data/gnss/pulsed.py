"""Pulsed: a carrier that is switched on and off."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.draws import DrawColumns, Floats, Ints
from zktrace.learning.data.gnss.timebase import (
    FREQUENCY_MHZ,
    LENGTH,
    RATE_MHZ,
    TIME,
    Complexes,
    centre,
    cis,
    unit_power,
)
from zktrace.learning.data.gnss.waveforms import Normals, butterworth, coloured, frequency_to_signal

TONE, NOISE, CHIRP = range(3)
_FWHM = 4 * np.log(2)  # exp(-_FWHM (t/w)^2) is 1/2 at t = w/2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pulsed:
    """Pulse train: rectangular with short edges, or pairs of Gaussian pulses (the form of DME)."""

    uniforms: ClassVar[int] = 12
    normals: ClassVar[int] = 2 * LENGTH

    carrier: Ints
    interval: Floats  # us, from pulse to pulse
    duty: Floats  # on-time over interval
    start: Floats
    edge: Ints  # samples from off to on
    gaussian: NDArray[np.bool_]
    bandwidth: Floats  # of a noise or chirp carrier
    offset: Floats
    sweep: Floats  # us, of a chirp carrier
    phase: Floats

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        carrier = columns.choice(0.6, 0.25, 0.15)
        width = columns.log_between(2, 40)
        width = np.where(carrier == TONE, 0, width)
        return cls(
            carrier=carrier,
            interval=columns.log_between(0.6, 9),
            duty=columns.between(0.08, 0.6),
            start=columns.one(),
            edge=columns.integer(1, 5),
            gaussian=columns.yes(0.3),
            bandwidth=width,
            offset=centre(columns.one(), width),
            sweep=columns.log_between(2, 15),
            phase=columns.one(),
        )

    def envelope(self) -> Floats:
        """Between 0 and 1. A Gaussian pair has two half-height widths of duty * interval / 2."""
        interval = (self.interval * RATE_MHZ)[:, None]
        turns = TIME / interval + self.start[:, None]
        away = (turns - np.rint(turns)) * interval  # samples from the nearest centre
        on = self.duty[:, None] * interval
        box = np.clip((on / 2 - np.abs(away)) / self.edge[:, None] + 0.5, 0, 1)
        half = on / 2
        apart = np.minimum(2 * half, interval / 2)
        lobe = (np.abs(away) - apart / 2) / half
        return np.where(self.gaussian[:, None], np.exp(-_FWHM * lobe**2), box)

    def signal(self, normals: Normals) -> Complexes:
        out = cis(TIME * (self.offset / RATE_MHZ)[:, None] + self.phase[:, None])
        rows = np.flatnonzero(self.carrier == NOISE)
        if len(rows):
            offset = FREQUENCY_MHZ - self.offset[rows, None]
            out[rows] = coloured(normals[rows], butterworth(offset, self.bandwidth[rows, None], 4))
        rows = np.flatnonzero(self.carrier == CHIRP)
        if len(rows):
            turns = TIME / (self.sweep[rows] * RATE_MHZ)[:, None] + self.phase[rows, None]
            ramp = self.bandwidth[rows, None] * (turns - np.floor(turns) - 0.5)
            out[rows] = frequency_to_signal(self.offset[rows, None] + ramp, self.phase[rows])
        return unit_power(out * self.envelope().astype(np.float32))
