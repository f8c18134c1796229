"""The simulator's steps as the formulas say them: one element, one line, one sample after another.

Plain loops over Python's complex numbers; nothing is shared with the package but records of parameters.
"""

import cmath
import math

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.data.gnss.scene import Scene
from zktrace.learning.data.gnss.stations import FrontEnd

Array = NDArray[np.generic]
LENGTH, KEPT, RATE = 1088, 1024, 100.0


def turn(cycles: float) -> complex:
    return cmath.exp(2j * math.pi * cycles)


def frequency(line: int) -> float:
    """MHz of a line of the spectrum."""
    return (line if line < LENGTH // 2 else line - LENGTH) * RATE / LENGTH


def rendered(element: Array) -> NDArray[np.float64]:
    """[frequency, time] of one element."""
    samples = [0j] * 16 + [complex(value) for value in element] + [0j] * 16
    window = [math.sin(math.pi * n / 64) ** 2 for n in range(64)]
    noise = sum(w * w for w in window) * 10 ** (-56 / 10)
    twiddle = [turn(-k / 64) for k in range(64)]
    image = np.zeros((32, 32))
    for frame in range(32):
        piece = [samples[32 * frame + n] * window[n] for n in range(64)]
        power = [abs(sum(piece[n] * twiddle[n * k % 64] for n in range(64))) ** 2 / noise for k in range(64)]
        shifted = power[32:] + power[:32]
        for row in range(32):
            mean = (shifted[2 * row] + shifted[2 * row + 1]) / 2
            level = 10 * math.log10(mean) if mean > 1e-20 else -200.0
            image[row, frame] = (min(max(level, -10.0), 50.0) + 10) / 60
    return image


def transfer(scene: Scene, row: int, element: int, coupling: Array, line: int) -> complex:
    """Channel of one sample to one element at one line of the spectrum."""
    positions = [(-0.25, -0.25), (-0.25, 0.25), (0.25, -0.25), (0.25, 0.25)]
    total = 0j
    for path in range(scene.delay.shape[1]):
        az, el = scene.azimuth[row, path], scene.elevation[row, path]
        a = [turn(x * math.cos(el) * math.cos(az) + y * math.cos(el) * math.sin(az)) for x, y in positions]
        coupled = sum(complex(coupling[element, m]) * a[m] for m in range(4))
        pattern = math.sqrt(0.9 * max(math.cos(math.pi / 2 - el), 0) ** 1.3 + 0.1)
        alpha = scene.amplitude[row, path] * turn(scene.phase[row, path])
        total += alpha * pattern * coupled * turn(-frequency(line) / RATE * scene.delay[row, path])
    return total


def response(end: FrontEnd, element: int, line: int) -> complex:
    """g_m h_m(f)."""
    f, m = frequency(line), element
    ripple = (
        end.ripple_db[m] / 2 * math.cos(2 * math.pi * (f / end.ripple_period_mhz[m] + end.ripple_phase[m]))
    )
    level = end.gain_db[m] + ripple + end.tilt_db[m] * f / 50
    magnitude = 10 ** (level / 20) / math.sqrt(1 + (f / end.roll_off_mhz) ** 24)
    return magnitude * turn(end.phase[m]) * turn(-f / RATE * end.skew[m])


def digitised(end: FrontEnd, element: int, field: Array, loud: bool) -> list[complex]:
    """One channel from units of noise to numbers between -1 and 1."""
    m = element
    gain = 10 ** ((end.noise_dbfs - (12 if loud else 0)) / 20)
    c, phi = 10 ** (end.iq_gain_db[m] / 40), end.iq_phase[m]
    out = []
    for value in field:
        i, q = value.real, value.imag
        i, q = c * i, (q * math.cos(phi) + i * math.sin(phi)) / c
        i, q = gain * (i + end.dc[m].real), gain * (q + end.dc[m].imag)
        i, q = (min(max(round(part * 8192), -8192), 8191) / 8192 for part in (i, q))
        out.append(complex(i, q))
    return out
