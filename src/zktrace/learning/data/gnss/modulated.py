"""Modulated: one to three digitally modulated carriers, each with its own rate, alphabet and pulse."""

from dataclasses import dataclass
from typing import ClassVar, Final, Self

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
    unit_power,
)
from zktrace.learning.data.gnss.waveforms import Normals

BPSK, QPSK, QAM16, GMSK = range(4)
SPAN: Final = 6  # a root-raised-cosine pulse reaches this many symbols to either side
GMSK_BT: Final = 0.3
_CLOSE: Final = 5e-4  # to a singularity: nearer, float32 loses more than the limit does

Pulses = NDArray[np.float32]

_FOUR: Final = np.arange(16)
_ALPHABET: Final = np.array(
    [
        1.0 - 2.0 * (_FOUR & 1),
        ((1 - 2 * (_FOUR & 1)) + 1j * (1 - 2 * (_FOUR >> 1 & 1))) / np.sqrt(2),
        ((2 * (_FOUR & 3) - 3) + 1j * (2 * (_FOUR >> 2) - 3)) / np.sqrt(10),
        1.0 - 2.0 * (_FOUR & 1),
    ]
)  # unit mean power; GMSK sends signs


def root_raised_cosine(x: Pulses, beta: Pulses) -> Pulses:
    """The pulse at time x (in symbols), limits at its removable singularities included."""
    near = np.abs(x) < _CLOSE
    edge = np.abs(np.abs(4 * beta * x) - 1) < _CLOSE
    safe = np.where(near | edge, 0.1234567 / beta, x)
    top = np.sin(np.pi * safe * (1 - beta)) + 4 * beta * safe * np.cos(np.pi * safe * (1 + beta))
    plain = top / (np.pi * safe * (1 - (4 * beta * safe) ** 2))
    quarter = np.pi / (4 * beta)
    at_edge = beta / np.sqrt(2) * ((1 + 2 / np.pi) * np.sin(quarter) + (1 - 2 / np.pi) * np.cos(quarter))
    out: Pulses = np.where(near, 1 - beta + 4 * beta / np.pi, np.where(edge, at_edge, plain))
    return out


def filtered(symbols: NDArray[np.complex128], position: Floats, beta: Floats) -> Complexes:
    """sum_k a_k h(position - k): `position` counts symbols, and symbol k stands at column k + SPAN."""
    whole = np.floor(position)
    first = whole.astype(np.int64)
    part = (position - whole).astype(np.float32)
    roundness = beta.astype(np.float32)[:, None]
    total = np.zeros(position.shape, np.complex64)
    for step in range(-SPAN + 1, SPAN + 1):
        pulse = root_raised_cosine(part - np.float32(step), roundness)
        total += pulse * np.take_along_axis(symbols, first + step + SPAN, axis=1).astype(np.complex64)
    return total


def gaussian_smoothed(steps: Floats, rate: Floats) -> Floats:
    """A frequency staircase through the Gaussian filter of GMSK (bandwidth BT times the symbol rate)."""
    response = np.exp(-np.log(2) / 2 * (FREQUENCY_MHZ / (GMSK_BT * rate[:, None])) ** 2)
    smooth: Floats = np.fft.ifft(np.fft.fft(steps) * response).real
    return smooth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Modulated:
    """Carriers along the second axis; symbols along the third."""

    MOST: ClassVar[int] = 3
    SYMBOLS: ClassVar[int] = 240  # 10.88 us at 20 MBd, and SPAN symbols on either side
    uniforms: ClassVar[int] = 1 + 8 * MOST + MOST * SYMBOLS
    normals: ClassVar[int] = 0

    carriers: Ints
    alphabet: Ints  # [n, MOST]
    rate: Floats  # [n, MOST], MBd
    shaped: NDArray[np.bool_]  # [n, MOST]: root raised cosine, otherwise plain chips
    beta: Floats  # [n, MOST]
    offset: Floats  # [n, MOST]
    level_db: Floats  # [n, MOST]
    start: Floats  # [n, MOST]
    phase: Floats  # [n, MOST]
    symbol: Ints  # [n, MOST, SYMBOLS], 0..15

    @classmethod
    def draw(cls, columns: DrawColumns) -> Self:
        carriers = 1 + columns.choice(0.6, 0.25, 0.15)
        alphabet = np.searchsorted([0.4, 0.7, 0.85], columns.many(cls.MOST), side="right")
        rate = 0.5 * np.exp(columns.many(cls.MOST) * np.log(40))
        shaped = columns.many(cls.MOST) < 0.5
        beta = 0.15 + 0.35 * columns.many(cls.MOST)
        width = rate * np.where(shaped & (alphabet != GMSK), 1 + beta, 2)  # main lobe of plain chips
        symbols = columns.many(cls.MOST * cls.SYMBOLS + 4 * cls.MOST)
        rest = symbols[:, cls.MOST * cls.SYMBOLS :].reshape(-1, 4, cls.MOST)
        chips = symbols[:, : cls.MOST * cls.SYMBOLS].reshape(-1, cls.MOST, cls.SYMBOLS)
        return cls(
            carriers=carriers,
            alphabet=alphabet.astype(np.int64),
            rate=rate,
            shaped=shaped,
            beta=beta,
            offset=centre(rest[:, 0], width),
            level_db=-8 * rest[:, 1],
            start=rest[:, 2],
            phase=rest[:, 3],
            symbol=np.floor(16 * chips).astype(np.int64),
        )

    def signal(self, normals: Normals) -> Complexes:
        total = np.zeros((len(self.carriers), LENGTH), np.complex64)
        for carrier in range(self.MOST):
            rows = np.flatnonzero(carrier < self.carriers)
            if len(rows):
                level = decibel(self.level_db[rows, carrier]).astype(np.float32)
                total[rows] += level[:, None] * self._carrier(rows, carrier)
        return unit_power(total)

    def baseband(self, rows: Ints, carrier: int) -> Complexes:
        """One carrier before it is moved to its offset, unit mean power."""
        alphabet, rate = self.alphabet[rows, carrier], self.rate[rows, carrier]
        position = TIME * (rate / RATE_MHZ)[:, None] + self.start[rows, carrier, None]
        symbols = _ALPHABET[alphabet[:, None], self.symbol[rows, carrier]]
        held = np.take_along_axis(symbols, np.floor(position).astype(np.int64) + SPAN, axis=1)
        out = held.astype(np.complex64)
        minimum = np.flatnonzero(alphabet == GMSK)
        if len(minimum):
            speed = gaussian_smoothed(held[minimum].real, rate[minimum]) * (rate[minimum] / 4)[:, None]
            out[minimum] = cis(np.cumsum(speed / RATE_MHZ, axis=1))
        soft = np.flatnonzero(self.shaped[rows, carrier] & (alphabet != GMSK))
        if len(soft):
            out[soft] = filtered(symbols[soft], position[soft], self.beta[rows, carrier][soft])
        return unit_power(out)

    def _carrier(self, rows: Ints, carrier: int) -> Complexes:
        turn = TIME * (self.offset[rows, carrier] / RATE_MHZ)[:, None] + self.phase[rows, carrier, None]
        return self.baseband(rows, carrier) * cis(turn)
