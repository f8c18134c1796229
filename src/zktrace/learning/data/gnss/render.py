"""From a recording to the tensor a network sees: one time-frequency image an element.

Pad 16 + 16 zeros, 64-point Hann windows every 32 samples (32 frames), power in units of the nominal noise
(-56 dBFS), mean of neighbouring bins (32 of 3.125 MHz), dB, clipped to -10..50 and scaled to 0..1.
Simulated and real recordings take the same way.
"""

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.data.gnss.stations import NOISE_DBFS
from zktrace.learning.data.gnss.timebase import ELEMENTS, KEPT, Complexes

SIZE: Final = 32  # bins and frames
FLOOR_DB: Final = -10.0
CEILING_DB: Final = 50.0
_WINDOW: Final = 64
_HOP: Final = 32
_PAD: Final = 16
HANN: Final = np.hanning(_WINDOW + 1)[:-1]
_UNIT: Final = 2 * float(np.sum(HANN**2)) * 10 ** (NOISE_DBFS / 10)  # a pair of bins that holds noise only
_SLICE: Final = 32  # recordings at a time: buffers of a size that memory is kept for
_TINY: Final = np.float32(1e-30)


def render(recordings: Complexes) -> NDArray[np.float32]:
    """[n, 4, 1024] complex recordings (full scale 1) to [n, element, frequency, time] in [0, 1]."""
    if recordings.ndim != 3 or recordings.shape[1:] != (ELEMENTS, KEPT):
        raise InputError(f"recordings of shape {recordings.shape}: must be [n, {ELEMENTS}, {KEPT}]")
    images = np.empty((len(recordings), ELEMENTS, SIZE, SIZE), np.float32)
    for start in range(0, len(recordings), _SLICE):
        images[start : start + _SLICE] = _render(recordings[start : start + _SLICE])
    return images


def _render(recordings: Complexes) -> NDArray[np.float32]:
    rows = len(recordings)
    padded = np.zeros((rows, ELEMENTS, KEPT + 2 * _PAD), np.complex64)
    padded[:, :, _PAD:-_PAD] = recordings
    outer = padded.strides[:2]
    step = padded.strides[2]
    frames = as_strided(padded, (rows, ELEMENTS, SIZE, _WINDOW), (*outer, _HOP * step, step), writeable=False)
    spectrum = np.fft.fft(frames * HANN)  # float64: numpy's 64-point transform is slower in float32
    parts = spectrum.view(np.float64)
    parts *= parts
    pairs = parts[..., 0::4] + parts[..., 1::4] + parts[..., 2::4] + parts[..., 3::4]
    level = np.maximum((pairs / _UNIT).astype(np.float32), _TINY)
    np.log(level, out=level)
    level *= np.float32(10 / np.log(10) / (CEILING_DB - FLOOR_DB))
    level -= np.float32(FLOOR_DB / (CEILING_DB - FLOOR_DB))
    np.clip(level, 0, 1, out=level)
    image = np.empty((rows, ELEMENTS, SIZE, SIZE), np.float32)
    turned = level.swapaxes(2, 3)
    image[:, :, : SIZE // 2] = turned[:, :, SIZE // 2 :]  # negative frequencies first
    image[:, :, SIZE // 2 :] = turned[:, :, : SIZE // 2]
    return image
