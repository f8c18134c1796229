"""Chirp, FreqHopper, Multitone and Noise: what is drawn, and the waveform that follows from it.

Each class is a frozen record of arrays (one entry a sample), made by `draw` from uniforms and turned into
complex envelopes [n, LENGTH] of unit mean power by `signal`. Bandwidths and offsets are in MHz, times in us.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

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
    decibel,
    tones,
    unit_power,
)

Normals = NDArray[np.float32]


class Waveform(Protocol):
    """A class of interference: how many numbers a sample needs, how it is drawn, how it sounds."""

    uniforms: ClassVar[int]
    normals: ClassVar[int]

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        """The parameters of a batch, from `uniforms` columns."""
        ...

    def signal(self, normals: Normals) -> Complexes:
        """The envelopes of a batch, from `normals` columns of standard normals."""
        ...


def white(normals: Normals) -> Complexes:
    """Complex white noise from 2 LENGTH normals a row, unit power up to a factor."""
    return np.ascontiguousarray(normals[:, : 2 * LENGTH]).view(np.complex64)


def coloured(normals: Normals, power_density: Floats) -> Complexes:
    """Gaussian noise of a given power spectral density on the lines of FREQUENCY_MHZ."""
    return np.fft.ifft(white(normals) * np.sqrt(power_density).astype(np.float32)).astype(np.complex64)


def butterworth(offset_mhz: Floats, width_mhz: Floats, order: Ints | int) -> Floats:
    """Power response of a Butterworth band of full width `width_mhz` around 0: half power at its edges."""
    ratio = np.abs(offset_mhz) / (width_mhz / 2)
    out: Floats = 1 / (1 + np.minimum(ratio, 1e3) ** (2 * np.asarray(order)))
    return out


def sweep(shape: Ints, u: Floats) -> Floats:
    """The frequency law g(u) in [-1/2, 1/2]: up, down, parabola, parabola reversed, triangle, sine."""
    parabola = (2 * u - 1) ** 2 - 0.5
    laws = (u - 0.5, 0.5 - u, parabola, -parabola, 0.5 - np.abs(2 * u - 1), np.sin(2 * np.pi * u) / 2)
    return np.choose(shape[:, None], laws)


def frequency_to_signal(frequency_mhz: Floats, phase: Floats) -> Complexes:
    """A constant-envelope signal with this instantaneous frequency and starting phase (in turns)."""
    return cis(np.cumsum(frequency_mhz / RATE_MHZ, axis=1) + phase[:, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chirp:
    """A frequency sweep repeated every T."""

    uniforms: ClassVar[int] = 8
    normals: ClassVar[int] = 0

    shape: Ints
    bandwidth: Floats
    period: Floats
    offset: Floats
    start: Floats  # where in the sweep the recording begins
    phase: Floats

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        shape = columns.choice(0.35, 0.15, 0.15, 0.15, 0.12, 0.08)
        bandwidth = columns.between(5, 90)
        speed = columns.choice(0.40, 0.35, 0.25)
        low, high = np.array([2.0, 6.0, 15.0])[speed], np.array([6.0, 15.0, 50.0])[speed]
        return cls(
            shape=shape,
            bandwidth=bandwidth,
            period=columns.log_between(low, high),
            offset=centre(columns.one(), bandwidth),
            start=columns.one(),
            phase=columns.one(),
        )

    def frequency(self) -> Floats:
        """Instantaneous frequency in MHz."""
        turns = TIME / (self.period * RATE_MHZ)[:, None] + self.start[:, None]
        return self.offset[:, None] + self.bandwidth[:, None] * sweep(self.shape, turns - np.floor(turns))

    def signal(self, normals: Normals) -> Complexes:
        return frequency_to_signal(self.frequency(), self.phase)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreqHopper:
    """One tone that jumps between equally spaced channels."""

    HOPS: ClassVar[int] = 96  # 10.88 us of dwells of 0.12 us, and one that has begun
    uniforms: ClassVar[int] = 8 + 2 * HOPS
    normals: ClassVar[int] = LENGTH

    channels: Ints
    bandwidth: Floats
    dwell: Floats
    offset: Floats
    start: Floats  # fraction of the first dwell that has passed
    jitter: Floats  # rms phase step a sample, in turns; 0 for most
    channel: Ints  # [n, HOPS]
    phase: Floats  # [n, HOPS]

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        channels, bandwidth = columns.integer(4, 32), columns.between(10, 90)
        return cls(
            channels=channels,
            bandwidth=bandwidth,
            dwell=columns.log_between(0.12, 2.5),
            offset=centre(columns.one(), bandwidth),
            start=columns.one(),
            jitter=np.where(columns.yes(0.4), 1, 0) * columns.between(0.003, 0.02),
            channel=np.floor(columns.many(cls.HOPS) * channels[:, None]).astype(np.int64),
            phase=columns.many(cls.HOPS),
        )

    def hops(self) -> Ints:
        """Which hop each sample belongs to."""
        return np.floor(TIME / (self.dwell * RATE_MHZ)[:, None] + self.start[:, None]).astype(np.int64)

    def signal(self, normals: Normals) -> Complexes:
        spacing = self.bandwidth / (self.channels - 1)
        tone = (self.offset - self.bandwidth / 2)[:, None] + self.channel * spacing[:, None]
        hop = self.hops()
        cycles = np.take_along_axis(tone, hop, axis=1) * (TIME / RATE_MHZ)
        cycles += np.take_along_axis(self.phase, hop, axis=1)
        cycles += np.cumsum(normals[:, :LENGTH] * self.jitter[:, None], axis=1)
        return cis(cycles)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Multitone:
    """Several steady tones; the outermost two are the band's edges."""

    MOST: ClassVar[int] = 20
    uniforms: ClassVar[int] = 8 + 3 * MOST
    normals: ClassVar[int] = 0

    count: Ints
    bandwidth: Floats
    offset: Floats
    even: NDArray[np.bool_]
    spread_db: Floats
    place: Floats  # [n, MOST], in [-1/2, 1/2]
    level_db: Floats  # [n, MOST]
    phase: Floats  # [n, MOST]

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        count, bandwidth = columns.integer(2, cls.MOST), columns.between(4, 90)
        offset, even = centre(columns.one(), bandwidth), columns.yes(0.5)
        spread = np.array([0.0, 6.0, 12.0])[columns.choice(1 / 3, 1 / 3, 1 / 3)]
        number = np.arange(cls.MOST)
        grid = number / (count[:, None] - 1) - 0.5
        loose = columns.many(cls.MOST) - 0.5
        loose = np.where(number == 0, -0.5, np.where(number == 1, 0.5, loose))
        return cls(
            count=count,
            bandwidth=bandwidth,
            offset=offset,
            even=even,
            spread_db=spread,
            place=np.where(even[:, None], grid, loose),
            level_db=-columns.many(cls.MOST) * spread[:, None],
            phase=columns.many(cls.MOST),
        )

    def signal(self, normals: Normals) -> Complexes:
        present = np.arange(self.MOST) < self.count[:, None]
        frequency = self.offset[:, None] + self.bandwidth[:, None] * self.place
        amplitude = np.where(present, decibel(self.level_db), 0).astype(np.float32)
        weights = (amplitude * cis(self.phase))[:, None, :]
        return unit_power(tones(weights, np.where(present, frequency, 0) / RATE_MHZ)[:, 0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noise:
    """Gaussian noise in one to four bands."""

    MOST: ClassVar[int] = 4
    uniforms: ClassVar[int] = 4 + 4 * MOST
    normals: ClassVar[int] = 2 * LENGTH

    bands: Ints
    bandwidth: Floats  # [n, MOST]
    offset: Floats  # [n, MOST]
    order: Ints  # [n, MOST]
    level_db: Floats  # [n, MOST]

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        bands = 1 + columns.choice(0.55, 0.2, 0.15, 0.1)
        width = np.exp(columns.many(cls.MOST) * np.log(60)) / np.sqrt(bands)[:, None]
        return cls(
            bands=bands,
            bandwidth=width,
            offset=centre(columns.many(cls.MOST), width),
            order=2 + np.floor(columns.many(cls.MOST) * 7).astype(np.int64),
            level_db=-6 * columns.many(cls.MOST),
        )

    def density(self) -> Floats:
        """Power spectral density; independent bands add. A level is the height of its band."""
        total = np.zeros((len(self.bands), LENGTH))
        for band in range(self.MOST):
            shape = butterworth(
                FREQUENCY_MHZ - self.offset[:, band, None],
                self.bandwidth[:, band, None],
                self.order[:, band, None],
            )
            height = np.where(band < self.bands, decibel(self.level_db[:, band]) ** 2, 0)
            total += height[:, None] * shape
        return total

    def signal(self, normals: Normals) -> Complexes:
        return unit_power(coloured(normals, self.density()))
