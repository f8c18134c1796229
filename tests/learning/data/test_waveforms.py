"""Each class of interference: its draws lie in the specified ranges, and the waveform does what they say."""

import numpy as np
import pytest
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.data.gnss.draws import DrawColumns, exponential, laplace, poisson
from zktrace.learning.data.gnss.modulated import GMSK, Modulated, root_raised_cosine
from zktrace.learning.data.gnss.pulsed import CHIRP, NOISE, TONE, Pulsed
from zktrace.learning.data.gnss.simulator import CLASS_NAMES, WAVEFORMS
from zktrace.learning.data.gnss.timebase import FREQUENCY_MHZ, LENGTH, RATE_MHZ, TIME
from zktrace.learning.data.gnss.waveforms import Chirp, FreqHopper, Multitone, Noise, Waveform

MANY = 3000


def drawn(kind: type[Waveform], count: int, seed: int = 1):  # noqa: ANN201
    rng = np.random.default_rng(seed)
    columns = DrawColumns(rng.random((count, kind.uniforms)))
    made = kind.draw(columns)
    assert columns.used <= kind.uniforms
    return made, rng.standard_normal((count, kind.normals)).astype(np.float32)


def instantaneous(signal: NDArray[np.complex64]) -> NDArray[np.float64]:
    """MHz between neighbouring samples."""
    return np.angle(signal[:, 1:] * np.conj(signal[:, :-1])).astype(float) / (2 * np.pi) * RATE_MHZ


def share_of(mask: NDArray[np.bool_], expected: float) -> bool:
    """Within five standard deviations of a probability."""
    return abs(mask.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / mask.size)


def within(values: NDArray[np.generic], low: float, high: float) -> bool:
    """In the range, and filling it."""
    reach = 0.02 * (high - low)
    inside = low - 1e-9 <= values.min() and values.max() <= high + 1e-9
    return bool(inside and values.min() < low + reach and values.max() > high - reach)


@pytest.mark.parametrize("kind", WAVEFORMS, ids=CLASS_NAMES)
def test_unit_power_inside_the_band(kind: type[Waveform]) -> None:
    made, normals = drawn(kind, 300)
    signal = made.signal(normals)
    assert signal.shape == (300, LENGTH)
    assert signal.dtype == np.complex64
    power = np.abs(signal) ** 2
    np.testing.assert_allclose(power.mean(axis=1), 1, atol=2e-5)
    spectrum = np.abs(np.fft.fft(signal * np.hanning(LENGTH))) ** 2
    outside = spectrum[:, np.abs(FREQUENCY_MHZ) > 47].sum(axis=1) / spectrum.sum(axis=1)
    assert np.median(outside) < 5e-3  # phase jumps of a hopper splash a little
    assert np.quantile(outside, 0.9) < 0.05


def test_chirp_draws() -> None:
    chirp, _ = drawn(Chirp, MANY)
    assert within(chirp.bandwidth, 5, 90)
    assert 2 <= chirp.period.min() <= chirp.period.max() <= 50
    for low, high, share in ((2, 6, 0.40), (6, 15, 0.35), (15, 50, 0.25)):
        assert share_of((low <= chirp.period) & (chirp.period < high), share)
    for shape, share in enumerate((0.35, 0.15, 0.15, 0.15, 0.12, 0.08)):
        assert share_of(chirp.shape == shape, share)
    assert (np.abs(chirp.offset) + chirp.bandwidth / 2 <= 45 + 1e-9).all()


def test_a_chirp_occupies_its_bandwidth_and_no_more() -> None:
    chirp, normals = drawn(Chirp, 600)
    heard = instantaneous(chirp.signal(normals))
    low, high = chirp.offset - chirp.bandwidth / 2, chirp.offset + chirp.bandwidth / 2
    assert (heard.min(axis=1) > low - 0.1).all()
    assert (heard.max(axis=1) < high + 0.1).all()
    whole = chirp.period < 10  # a complete sweep is inside
    spanned = (heard.max(axis=1) - heard.min(axis=1))[whole] / chirp.bandwidth[whole]
    assert spanned.min() > 0.9
    assert np.median(spanned) > 0.98


def test_a_sawtooth_returns_once_a_sweep_time() -> None:
    chirp, normals = drawn(Chirp, 600)
    heard = instantaneous(chirp.signal(normals))
    for row in np.flatnonzero((chirp.shape <= 1) & (chirp.period < 4)):
        jumps = np.flatnonzero(np.abs(np.diff(heard[row])) > chirp.bandwidth[row] * 0.6)
        jumps = jumps[np.concatenate(([True], np.diff(jumps) > 3))]
        assert len(jumps) >= 2
        np.testing.assert_allclose(np.diff(jumps) / RATE_MHZ, chirp.period[row], atol=0.021)


def test_hopper_draws() -> None:
    hopper, _ = drawn(FreqHopper, MANY)
    assert within(hopper.channels, 4, 32)
    assert within(hopper.bandwidth, 10, 90)
    assert 0.12 <= hopper.dwell.min() <= hopper.dwell.max() <= 2.5
    assert abs(np.median(hopper.dwell) - np.sqrt(0.12 * 2.5)) < 0.05  # log-uniform
    assert share_of(hopper.jitter > 0, 0.4)
    assert (hopper.channel < hopper.channels[:, None]).all()


def test_a_hopper_dwells_on_its_channels() -> None:
    hopper, normals = drawn(FreqHopper, 300)
    heard = instantaneous(hopper.signal(normals))
    spacing = hopper.bandwidth / (hopper.channels - 1)
    low = hopper.offset - hopper.bandwidth / 2
    hop = hopper.hops()
    for row in np.flatnonzero(hopper.jitter == 0):
        channel = (heard[row] - low[row]) / spacing[row]
        steady = np.diff(hop[row]) == 0  # not across a hop
        assert np.abs(channel - np.rint(channel))[steady].max() < 0.02
        assert set(np.rint(channel[steady])) <= set(range(hopper.channels[row]))
        lengths = np.diff(np.flatnonzero(np.diff(hop[row])))  # complete dwells
        assert np.abs(lengths - hopper.dwell[row] * RATE_MHZ).max(initial=0) <= 1


def test_modulated_draws() -> None:
    made, _ = drawn(Modulated, MANY)
    for carriers, share in ((1, 0.6), (2, 0.25), (3, 0.15)):
        assert share_of(made.carriers == carriers, share)
    for alphabet, share in enumerate((0.4, 0.3, 0.15, 0.15)):
        assert share_of(made.alphabet == alphabet, share)
    assert share_of(made.shaped, 0.5)
    assert 0.5 <= made.rate.min() <= made.rate.max() <= 20
    assert abs(np.median(made.rate) - np.sqrt(0.5 * 20)) < 0.2
    assert within(made.beta, 0.15, 0.5)
    assert within(made.level_db, -8, 0)


def test_modulated_carriers_keep_their_shape() -> None:
    made, _ = drawn(Modulated, 400)
    rows = np.arange(400)
    base = made.baseband(rows, 0)
    envelope = np.abs(base)
    alphabet, shaped = made.alphabet[:, 0], made.shaped[:, 0]
    flat = (alphabet == GMSK) | (~shaped & (alphabet <= 1))  # chips of BPSK and QPSK, and GMSK
    np.testing.assert_allclose(envelope[flat], 1, atol=1e-4)
    soft = shaped & (alphabet != GMSK) & (made.rate[:, 0] > 2)
    spectrum = np.abs(np.fft.fft(base * np.hanning(LENGTH))) ** 2
    band = np.abs(FREQUENCY_MHZ) <= made.rate[:, :1] * (1 + made.beta[:, :1]) / 2 + 0.5
    inside = np.where(band, spectrum, 0).sum(axis=1) / spectrum.sum(axis=1)
    assert inside[soft].min() > 0.99
    chips = ~shaped & (alphabet == 0) & (made.rate[:, 0] < 10)
    changes = [np.flatnonzero(np.diff(base[row].real)) for row in np.flatnonzero(chips)]
    for row, at in zip(np.flatnonzero(chips), changes, strict=True):
        symbols = np.diff(at) * made.rate[row, 0] / RATE_MHZ
        assert np.abs(symbols - np.rint(symbols)).max(initial=0) <= 1.01 * made.rate[row, 0] / RATE_MHZ


def test_the_pulse_is_root_raised_cosine() -> None:
    """Its square in frequency is a raised cosine: shifted copies by whole symbols are orthogonal."""
    step = 0.01
    x = np.arange(-40, 40, step)
    for beta in (0.15, 0.25, 0.5):
        pulse = root_raised_cosine(x, np.array(beta))
        assert np.isfinite(pulse).all()
        for shift in range(4):
            product = np.sum(pulse * root_raised_cosine(x - shift, np.array(beta))) * step
            assert abs(product - (shift == 0)) < 2e-3
        nearby = root_raised_cosine(np.array([1 / (4 * beta), 1 / (4 * beta) + 2e-3]), np.array(beta))
        assert abs(nearby[0] - nearby[1]) < 0.01


def test_multitone_is_its_tones() -> None:
    made, normals = drawn(Multitone, MANY)
    assert within(made.count, 2, 20)
    assert within(made.bandwidth, 4, 90)
    assert share_of(made.even, 0.5)
    for spread in (0, 6, 12):
        assert share_of(made.spread_db == spread, 1 / 3)
    signal = made.signal(normals)
    for row in range(0, 200):
        k = made.count[row]
        f = made.offset[row] + made.bandwidth[row] * made.place[row, :k]
        assert np.ptp(f) == pytest.approx(made.bandwidth[row])
        level = 10 ** (made.level_db[row, :k] / 20)
        tones = level[:, None] * np.exp(
            2j * np.pi * (np.outer(f / RATE_MHZ, TIME) + made.phase[row, :k, None])
        )
        plain = tones.sum(axis=0)
        plain /= np.sqrt(np.mean(np.abs(plain) ** 2))
        np.testing.assert_allclose(signal[row], plain, atol=1e-4)


def test_pulses_have_their_duty_and_interval() -> None:
    made, normals = drawn(Pulsed, MANY)
    assert 0.6 <= made.interval.min() <= made.interval.max() <= 9
    assert within(made.duty, 0.08, 0.6)
    assert share_of(made.gaussian, 0.3)
    assert set(made.edge) == set(range(1, 6))
    for carrier, share in ((TONE, 0.6), (NOISE, 0.25), (CHIRP, 0.15)):
        assert share_of(made.carrier == carrier, share)
    envelope = made.envelope()
    signal = made.signal(normals)
    assert 0 <= envelope.min() <= envelope.max() <= 1
    for row in np.flatnonzero(made.interval < 3)[:400]:
        period = made.interval[row] * RATE_MHZ
        whole = int(LENGTH // period * period)
        on = (envelope[row, :whole] > 0.5).mean()
        assert abs(on - made.duty[row]) < 2.5 / period + 0.01
        if not made.gaussian[row]:
            rises = np.flatnonzero((envelope[row, 1:] > 0.5) & (envelope[row, :-1] <= 0.5))
            assert np.abs(np.diff(rises) - period).max(initial=0) <= 1.01
    quiet = envelope < 1e-3
    assert (np.abs(signal)[quiet] < 0.05).all()


def test_noise_has_its_density() -> None:
    made, _ = drawn(Noise, MANY)
    for bands, share in ((1, 0.55), (2, 0.2), (3, 0.15), (4, 0.1)):
        assert share_of(made.bands == bands, share)
    alone = made.bandwidth[made.bands == 1]
    assert 1 <= alone.min() <= alone.max() <= 60
    assert made.bandwidth[made.bands == 4].max() <= 30
    assert within(made.level_db, -6, 0)
    assert set(np.unique(made.order)) == set(range(2, 9))
    one = made.draw(DrawColumns(np.tile(np.random.default_rng(3).random((1, Noise.uniforms)), (400, 1))))
    normals = np.random.default_rng(4).standard_normal((400, Noise.normals)).astype(np.float32)
    density = one.density()[0]
    heard = np.mean(np.abs(np.fft.fft(one.signal(normals))) ** 2, axis=0)
    loud = density > density.max() / 10
    ratio = (heard / heard[loud].sum())[loud] / (density / density[loud].sum())[loud]
    assert np.abs(ratio - 1).max() < 0.3


def test_laws_made_from_uniforms() -> None:
    u = np.random.default_rng(0).random(200_000)
    assert exponential(u).mean() == pytest.approx(1, abs=0.02)
    assert np.abs(laplace(u)).mean() == pytest.approx(1, abs=0.02)
    assert laplace(u).mean() == pytest.approx(0, abs=0.02)
    for mean in (2, 8):
        count = poisson(u, np.full(len(u), mean), 23)
        assert count.mean() == pytest.approx(mean, abs=0.05)
        assert count.var() == pytest.approx(mean, rel=0.03)
    assert DrawColumns(np.random.default_rng(1).random((100_000, 2))).normal().std() == pytest.approx(
        1, abs=0.02
    )
    with pytest.raises(InputError, match="columns asked of"):
        DrawColumns(np.zeros((3, 2))).many(3)
