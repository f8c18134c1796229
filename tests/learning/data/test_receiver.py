"""Array, multipath, front end and rendering against plain loops, and what stations are."""

from dataclasses import replace

import numpy as np
import pytest

from learning.data import reference
from zktrace.errors import InputError
from zktrace.learning.data.gnss import A, B, GnssConfig, Receiver, ReceiverShift, Simulator, config_named
from zktrace.learning.data.gnss.draws import DrawColumns
from zktrace.learning.data.gnss.front_end import FrontEnds, response
from zktrace.learning.data.gnss.render import render
from zktrace.learning.data.gnss.scene import PATHS, Scene, element_pattern
from zktrace.learning.data.gnss.stations import FrontEnd, nominal_coupling
from zktrace.learning.data.gnss.timebase import KEPT, LEAD, LENGTH

STATION = Receiver.draw(7, 3, GnssConfig())


def scene(count: int, multipath=B, seed: int = 0) -> Scene:  # noqa: ANN001
    uniforms = np.random.default_rng(seed).random((count, Scene.UNIFORMS))
    return Scene.draw(DrawColumns(uniforms), multipath, np.full((count, 2), np.nan))


def test_render_equals_the_plain_loops() -> None:
    rng = np.random.default_rng(5)
    loud = 10 ** rng.uniform(-4, 0, KEPT)  # from below the floor to above the ceiling
    recording = ((rng.standard_normal((4, KEPT)) + 1j * rng.standard_normal((4, KEPT))) * loud).astype(
        np.complex64
    )
    recording[3] = 0
    image = render(recording[None])[0]
    assert image.shape == (4, 32, 32)
    assert image.dtype == np.float32
    for element in (0, 3):
        np.testing.assert_allclose(image[element], reference.rendered(recording[element]), atol=2e-6)


def test_render_puts_frequency_up_and_time_right() -> None:
    t = np.arange(KEPT)
    late_and_high = np.where(t >= 512, np.exp(2j * np.pi * 0.3 * t), 0) * 10 ** (-20 / 20)
    image = render(np.broadcast_to(late_and_high, (1, 4, KEPT)).astype(np.complex64))[0, 0]
    row = int(np.argmax(image[:, 24]))
    assert row == int((0.3 + 0.5) * 32)
    assert image[:, :15].max() == 0
    assert image[row, 20] > 0.5


def test_nominal_noise_is_at_zero_decibel() -> None:
    rng = np.random.default_rng(0)
    noise = (rng.standard_normal((20, 4, KEPT)) + 1j * rng.standard_normal((20, 4, KEPT))) / np.sqrt(2)
    image = render((noise * 10 ** (-56 / 20)).astype(np.complex64))[:, :, :, 1:-1]
    level = 10 ** ((image * 60 - 10) / 10)
    assert level.mean() == pytest.approx(1, abs=0.01)


def test_render_refuses_another_shape() -> None:
    with pytest.raises(InputError, match=r"must be \[n, 4, 1024\]"):
        render(np.zeros((4, KEPT), np.complex64))


def test_the_channel_equals_a_sum_over_paths() -> None:
    made = scene(3)
    coupling = STATION.coupling
    fast = made.transfer(np.tile(coupling.astype(np.complex64), (3, 1, 1)))
    for row in range(3):
        for element in range(4):
            for line in (0, 1, 500, 543, 544, 1087):
                slow = reference.transfer(made, row, element, coupling, line)
                assert abs(fast[row, element, line] - slow) < 2e-5


def test_scene_draws() -> None:
    made = scene(4000)
    azimuth, elevation = np.rad2deg(made.azimuth[:, 0]), np.rad2deg(made.elevation)
    assert -180 <= azimuth.min() < -175
    assert 175 < azimuth.max() <= 180
    assert -5 <= elevation.min() < -4
    assert 44 < elevation.max() <= 45
    present = made.amplitude[:, 1:] > 0
    np.testing.assert_array_equal(present.sum(axis=1), made.echoes)
    assert made.echoes.min() == 1
    assert made.echoes.mean() == pytest.approx(5.03, abs=0.2)
    assert made.echoes.max() < PATHS
    reflected = (made.amplitude[:, 1:] ** 2).sum(axis=1)
    np.testing.assert_allclose(-10 * np.log10(reflected), made.k_factor_db)
    assert made.k_factor_db.mean() == pytest.approx(6.5, abs=0.3)  # U(1, 12) and N(0, 2)
    assert made.k_factor_db.var() == pytest.approx(11**2 / 12 + 4, rel=0.1)
    assert made.delay[:, 1:].mean() == pytest.approx(6.0, abs=0.2)  # samples: 60 ns
    assert element_pattern(np.array([np.pi / 2]))[0] == pytest.approx(1)
    assert element_pattern(np.array([-0.05]))[0] == pytest.approx(np.sqrt(0.1))


def test_front_end_response_equals_its_formula() -> None:
    fast = response(STATION.front_end)
    for element in range(4):
        for line in (0, 3, 500, 544, 700, 1087):
            assert abs(fast[element, line] - reference.response(STATION.front_end, element, line)) < 1e-9


@pytest.mark.parametrize("loud", [False, True])
def test_digitising_equals_its_formula(loud: bool) -> None:
    rng = np.random.default_rng(2)
    field = (rng.standard_normal((1, 4, KEPT)) + 1j * rng.standard_normal((1, 4, KEPT))) * 300
    field[0, :, :5] *= 100  # beyond full scale
    end = STATION.front_end
    ends = FrontEnds.of([STATION])
    power = np.array([1e4 * (1.001 if loud else 0.999)])
    fast = ends.digitise(field.astype(np.complex64), np.array([0]), power)[0]
    assert np.abs(fast.real).max() <= 1
    for element in range(4):
        slow = np.array(reference.digitised(end, element, field[0, element], loud))
        apart = np.abs(fast[element] - slow)
        assert apart.max() < 2.1 / 8192
        assert (apart > 0).mean() < 0.01  # only where rounding hangs in the balance
        steps = fast[element].view(np.float32) * 8192
        np.testing.assert_array_equal(steps, np.rint(steps))


def test_the_whole_chain_equals_the_plain_one() -> None:
    """Waveform to recording for one sample, with the scene and noise read from its stream."""
    simulator = Simulator(seed=11, config=replace(GnssConfig(), multipath=A))
    waves = np.exp(2j * np.pi * np.cumsum(np.linspace(-0.3, 0.3, LENGTH)))[None].astype(np.complex64)
    got = simulator.receive(waves, [5], [2], jnr_db=20.0)
    station = simulator.roster[2]
    from zktrace.learning.data.streams import numbered, stream_key

    stream = numbered(stream_key(11, "gnss", "sample"), 5)
    columns = DrawColumns(stream.random(1 + Scene.UNIFORMS)[None])
    columns.one()
    noise = stream.standard_normal(2 * 4 * KEPT, dtype=np.float32).view(np.complex64).reshape(4, KEPT)
    assert station.site is not None
    place = np.array([[station.site.k_factor_db, station.site.delay_spread_ns]])
    made = Scene.draw(columns, A, place)
    spectrum = np.fft.fft(
        waves[0] * np.exp(2j * np.pi * station.front_end.carrier_offset_mhz / 100 * np.arange(LENGTH))
    )
    jammer = np.array(
        [
            np.fft.ifft(
                [
                    spectrum[line]
                    * reference.transfer(made, 0, m, station.coupling, line)
                    * reference.response(station.front_end, m, line)
                    for line in range(LENGTH)
                ]
            )[LEAD:]
            for m in range(4)
        ]
    )
    jammer *= np.sqrt(100 / np.mean(np.abs(jammer) ** 2))
    for element in range(4):
        field = jammer[element] + noise[element] / np.sqrt(2)
        slow = np.array(reference.digitised(station.front_end, element, field, loud=False))
        apart = np.abs(got.recordings[0, element] - slow)
        assert apart.max() < 2.1 / 8192
        assert (apart > 0).mean() < 0.01


def test_front_ends_have_the_measured_spread() -> None:
    ends = [Receiver.draw(0, number, GnssConfig()).front_end for number in range(400)]
    gains = np.array([end.gain_db for end in ends])
    np.testing.assert_allclose(gains.mean(axis=0), [0.20, -1.19, 0.22, 0.57], atol=0.1)
    np.testing.assert_allclose(gains.std(axis=0), 0.4, atol=0.08)
    ripple = np.array([end.ripple_db for end in ends])
    assert 0.5 <= ripple.min() <= ripple.max() <= 2.5
    assert np.array([end.skew for end in ends]).std() * 10 == pytest.approx(0.4, rel=0.1)  # ns
    assert np.array([end.iq_gain_db for end in ends]).std() == pytest.approx(0.3, rel=0.1)
    assert np.rad2deg(np.array([end.iq_phase for end in ends]).std()) == pytest.approx(1, rel=0.1)
    dc = 20 * np.log10(np.abs(np.array([end.dc for end in ends])))
    assert dc.mean() == pytest.approx(-35, abs=0.5)
    assert np.array([end.carrier_offset_mhz for end in ends]).std() == pytest.approx(2e-3, rel=0.15)
    level = np.array([end.noise_dbfs for end in ends])
    assert -58 <= level.min() < -57.5
    assert -54.5 < level.max() <= -54
    corner = np.array([end.roll_off_mhz for end in ends])
    assert 44 <= corner.min() <= corner.max() <= 48


def test_coupling_is_reciprocal_and_within_its_ranges() -> None:
    for number in range(50):
        matrix = Receiver.draw(0, number, GnssConfig()).coupling
        np.testing.assert_array_equal(matrix, matrix.T)
        level = 20 * np.log10(np.abs(matrix))
        for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
            assert -22 <= level[i, j] <= -15
        for i, j in ((0, 3), (1, 2)):
            assert -28 <= level[i, j] <= -20


def test_a_station_depends_on_its_number_alone() -> None:
    few, more = Simulator(seed=3, stations=2), Simulator(seed=3, stations=9)
    images = [each.samples(np.arange(6), np.arange(6), 1).images for each in (few, more)]
    np.testing.assert_array_equal(*images)
    other = Simulator(seed=3, stations=9).samples(np.arange(6), np.arange(6), 2).images
    assert (other != images[0]).any()


def test_without_domain_shift_stations_are_alike() -> None:
    simulator = Simulator(seed=3, config=GnssConfig(domain_shift=False))
    assert simulator.roster[0].site is None
    np.testing.assert_array_equal(simulator.roster[4].coupling, nominal_coupling())
    assert simulator.roster[4].front_end.noise_dbfs == FrontEnd.neutral().noise_dbfs == -56
    here = simulator.samples(np.arange(12), np.arange(12) % 6, 0)
    there = simulator.samples(np.arange(12), np.arange(12) % 6, np.arange(12) % 10)
    np.testing.assert_array_equal(here.images, there.images)


def test_receiver_shift_adds_gain_and_noise() -> None:
    index, kind = np.arange(200), np.arange(200) % 6
    plain = Simulator(seed=1, config=GnssConfig(domain_shift=False))
    shifted = Simulator(seed=1, config=GnssConfig(domain_shift=False, receiver_shift=ReceiverShift()))
    snr = [station.perturbation.snr_db for station in shifted.roster if station.perturbation]
    assert len(snr) == 10
    assert 5 <= min(snr) < max(snr) <= 20
    before = plain.recordings(index, kind, index % 10)
    after = shifted.recordings(index, kind, index % 10)
    np.testing.assert_array_equal(before.jnr_db, after.jnr_db)
    low = before.jnr_db < 30  # away from clipping
    power = [np.mean(np.abs(block.recordings) ** 2, axis=(1, 2)) for block in (before, after)]
    gain = 10 ** (3 / 10) * (1 + 10 ** (-np.array(snr)[index % 10] / 10))
    assert np.median(np.abs(power[1] / power[0] / gain - 1)[low]) < 0.02


def test_the_gain_steps_down_for_a_loud_input() -> None:
    waves = np.ones((2, LENGTH), np.complex64)
    simulator = Simulator(seed=0, config=GnssConfig(domain_shift=False))
    quiet = np.abs(simulator.receive(waves, [0, 1], jnr_db=39.9).recordings) ** 2
    loud = np.abs(simulator.receive(waves, [0, 1], jnr_db=40.1).recordings) ** 2
    assert 10 * np.log10(loud.mean() / quiet.mean()) == pytest.approx(0.2 - 12, abs=0.05)


@pytest.mark.parametrize("words", [("C", "wide"), ("B", "loud")])
def test_unknown_words_name_the_known_ones(words: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="choose one of"):
        config_named(*words)
