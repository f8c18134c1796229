"""The array and the paths to it.

    x_m(f) = sum_p alpha_p G(el_p) [M a(az_p, el_p)]_m exp(-2 pi j f tau_p) s(f)

Four patches at (+-d/2, +-d/2) with d half a wavelength. One direct path and P reflections; the whole array
is 0.045 samples across, so a path reaches all elements with one delay and four phases.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.draws import DrawColumns, Floats, Ints, exponential, laplace, poisson
from zktrace.learning.data.gnss.settings import Multipath
from zktrace.learning.data.gnss.timebase import NANOSECONDS, Complexes, cis, delays

PATHS: Final = 24  # the direct path and at most 23 reflections
ECHOES: Final = PATHS - 1
_QUARTER: Final = 0.25  # element offsets from the centre, in wavelengths
POSITIONS: Final = _QUARTER * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]], dtype=np.float64)


def steering(azimuth: Floats, elevation: Floats) -> Complexes:
    """a_m of a plane wave (radians in [n, p]) at every element: [n, 4, p]."""
    across = np.cos(elevation) * np.cos(azimuth)
    along = np.cos(elevation) * np.sin(azimuth)
    return cis(POSITIONS[:, 0, None] * across[:, None] + POSITIONS[:, 1, None] * along[:, None])


def element_pattern(elevation: Floats) -> Floats:
    """Amplitude of a patch: sqrt(.9 cos^1.3(zenith) + .1), and the floor below the horizon."""
    return np.sqrt(0.9 * np.maximum(np.sin(elevation), 0) ** 1.3 + 0.1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """The geometry of a batch; path 0 is the direct one, absent paths have power 0."""

    azimuth: Floats  # [n, PATHS], radians
    elevation: Floats  # [n, PATHS], radians
    delay: Floats  # [n, PATHS], samples
    amplitude: Floats  # [n, PATHS]
    phase: Floats  # [n, PATHS], turns
    echoes: Ints  # [n]
    k_factor_db: Floats  # [n]

    UNIFORMS: ClassVar[int] = 8 + 5 * ECHOES  # columns a sample takes

    @classmethod
    def draw(cls, columns: DrawColumns, multipath: Multipath, sites: Floats) -> Self:
        """`sites` [n, 2] holds K (dB) and delay spread (ns) of each sample's station, or NaN to draw them."""
        drawn_k = columns.between(*multipath.k_factor_db)
        drawn_spread = columns.between(*multipath.delay_spread_ns)
        k_factor_db = np.where(np.isnan(sites[:, 0]), drawn_k, sites[:, 0]) + 2 * columns.normal()
        spread = np.where(np.isnan(sites[:, 1]), drawn_spread, sites[:, 1])[:, None] / NANOSECONDS
        azimuth = columns.between(-np.pi, np.pi)
        elevation = np.deg2rad(columns.between(-5, 45))
        mean = columns.integer(2, 8)
        echoes = np.maximum(poisson(columns.one(), mean, ECHOES), 1)
        late = exponential(columns.many(ECHOES))
        power = np.exp(-late) * exponential(columns.many(ECHOES))
        power = np.where(np.arange(ECHOES) < echoes[:, None], power, 0)
        power *= (10 ** (-k_factor_db / 10) / power.sum(axis=1))[:, None]
        turned = azimuth[:, None] + np.deg2rad(40) * laplace(columns.many(ECHOES))
        raised = np.deg2rad(-5 + 50 * columns.many(ECHOES))
        return cls(
            azimuth=np.column_stack((azimuth, turned)),
            elevation=np.column_stack((elevation, raised)),
            delay=np.column_stack((np.zeros(len(azimuth)), late * spread)),
            amplitude=np.column_stack((np.ones(len(azimuth)), np.sqrt(power))),
            phase=np.column_stack((np.zeros(len(azimuth)), columns.many(ECHOES))),
            echoes=echoes,
            k_factor_db=k_factor_db,
        )

    def weights(self, coupling: NDArray[np.complex64]) -> Complexes:
        """What each path contributes to each element, [n, 4, PATHS]; `coupling` is [n, 4, 4]."""
        alpha = (self.amplitude * element_pattern(self.elevation)).astype(np.float32) * cis(self.phase)
        return alpha[:, None] * (coupling @ steering(self.azimuth, self.elevation))

    def transfer(self, coupling: NDArray[np.complex64]) -> Complexes:
        """The channel on every line of the spectrum, [n, 4, LENGTH]."""
        return delays(self.weights(coupling), self.delay)
