"""Samples by index: the whole chain from a seed to tensors, a block at a time.

(1) the sample's stream, (2) its waveform, (3) array and multipath, (4) the station's filter, (5) the jammer
scaled to its JNR and noise added, (6) digitised by the station, (7) rendered.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.errors import InputError
from zktrace.learning.arrays import Images
from zktrace.learning.data.gnss.draws import DrawColumns, Floats, Ints
from zktrace.learning.data.gnss.front_end import FrontEnds
from zktrace.learning.data.gnss.modulated import Modulated
from zktrace.learning.data.gnss.pulsed import Pulsed
from zktrace.learning.data.gnss.render import SIZE, render
from zktrace.learning.data.gnss.scene import Scene
from zktrace.learning.data.gnss.settings import DEFAULT, GnssConfig
from zktrace.learning.data.gnss.stations import Receiver
from zktrace.learning.data.gnss.timebase import ELEMENTS, KEPT, LEAD, LENGTH, TIME, Complexes, cis
from zktrace.learning.data.gnss.waveforms import Chirp, FreqHopper, Multitone, Noise, Waveform
from zktrace.learning.data.streams import numbered, stream_key

Progress = Callable[[int, int], None]  # samples done, samples in all

WAVEFORMS: Final[tuple[type[Waveform], ...]] = (Chirp, FreqHopper, Modulated, Multitone, Pulsed, Noise)
CLASS_NAMES: Final = tuple(kind.__name__ for kind in WAVEFORMS)
BLOCK: Final = 64  # samples computed together
_COMMON: Final = 1 + Scene.UNIFORMS  # uniforms every sample takes: its JNR and its scene
_NOISE: Final = 2 * ELEMENTS * KEPT
MOST_STATIONS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Recordings and what is known about them."""

    recordings: Complexes  # [n, 4, 1024], full scale 1
    jnr_db: Floats
    azimuth_deg: Floats
    elevation_deg: Floats
    k_factor_db: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Simulated tensors and what is known about them."""

    images: Images  # [n, 4, 32, 32]: element, frequency, time
    labels: Ints
    stations: Ints
    jnr_db: Floats


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """Deterministic in (seed, index): a sample does not depend on what is made with it or before it.

    A class and a station are part of the question, not of the stream: the same index under setting A and B,
    or heard by another station, is the same jammer at the same place in the same noise.
    """

    seed: int
    config: GnssConfig = DEFAULT
    stations: int = 10

    def __post_init__(self) -> None:
        stream_key(self.seed)
        if not 1 <= self.stations <= MOST_STATIONS:
            raise InputError(f"{self.stations} stations: must be 1..{MOST_STATIONS}")

    @cached_property
    def _key(self) -> NDArray[np.uint64]:
        return stream_key(self.seed, "gnss", "sample")

    @cached_property
    def roster(self) -> tuple[Receiver, ...]:
        """The stations, in order."""
        return tuple(Receiver.draw(self.seed, number, self.config) for number in range(self.stations))

    @cached_property
    def _front_ends(self) -> FrontEnds:
        return FrontEnds.of(self.roster)

    def recordings(self, indices: ArrayLike, labels: ArrayLike, stations: ArrayLike = 0) -> Block:
        """Recordings of the given samples, all computed at once."""
        return self._block(*self._aligned(indices, labels, stations))

    def receive(
        self, waves: Complexes, indices: ArrayLike, stations: ArrayLike = 0, *, jnr_db: float | None = None
    ) -> Block:
        """Recordings of any envelopes [n, LENGTH], at the places and in the noise of the given samples."""
        index, _, station = self._aligned(indices, 0, stations)
        common, noise = self._common([numbered(self._key, int(number)) for number in index])
        return self._receive(waves.copy(), common, noise, station, jnr_db)

    def samples(
        self,
        indices: ArrayLike,
        labels: ArrayLike,
        stations: ArrayLike = 0,
        *,
        workers: int = 1,
        progress: Progress | None = None,
    ) -> Samples:
        """Tensors of the given samples, by `workers` threads."""
        index, label, station = self._aligned(indices, labels, stations)
        images = np.empty((len(index), ELEMENTS, SIZE, SIZE), np.float32)
        jnr_db = np.empty(len(index))
        self.fill(images, jnr_db, index, label, station, workers=workers, progress=progress)
        return Samples(images=images, labels=label, stations=station, jnr_db=jnr_db)

    def fill(
        self,
        images: Images,
        jnr_db: Floats,
        indices: Ints,
        labels: Ints,
        stations: Ints,
        *,
        workers: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """`samples` into arrays that exist already, for instance in a mapped file."""
        if workers < 1:
            raise InputError(f"{workers} workers: at least one is needed")
        index, label, station = self._aligned(indices, labels, stations)
        _ = self._front_ends  # made once, before threads ask for it

        def one(start: int) -> int:
            part = slice(start, start + BLOCK)
            block = self._block(index[part], label[part], station[part])
            images[part] = render(block.recordings)
            jnr_db[part] = block.jnr_db
            return len(block.jnr_db)

        starts = range(0, len(index), BLOCK)
        pool = ThreadPoolExecutor(workers)
        done = 0
        try:
            for made in map(one, starts) if workers == 1 else pool.map(one, starts):
                done += made
                if progress is not None:
                    progress(done, len(index))
        finally:
            pool.shutdown(cancel_futures=True)  # whatever happened, nothing goes on in the background

    def _aligned(self, indices: ArrayLike, labels: ArrayLike, stations: ArrayLike) -> tuple[Ints, Ints, Ints]:
        index = np.atleast_1d(np.asarray(indices)).astype(np.int64)
        label = np.broadcast_to(np.asarray(labels, dtype=np.int64), index.shape)
        station = np.broadcast_to(np.asarray(stations, dtype=np.int64), index.shape)
        for name, values, limit in (
            ("index", index, 2**63 - 1),
            ("label", label, len(WAVEFORMS)),
            ("station", station, self.stations),
        ):
            if values.size and not 0 <= values.min() <= values.max() < limit:
                raise InputError(f"{name} {values.min()}..{values.max()}: must lie in 0..{limit - 1}")
        return index, label, station

    def _block(self, index: Ints, label: Ints, station: Ints) -> Block:
        streams = [numbered(self._key, int(number)) for number in index]  # (1)
        common, noise = self._common(streams)
        waves = np.empty((len(index), LENGTH), np.complex64)
        for kind, waveform in enumerate(WAVEFORMS):  # (2)
            rows = np.flatnonzero(label == kind)
            if len(rows):
                waves[rows] = _waves(waveform, [streams[row] for row in rows])
        return self._receive(waves, common, noise, station, None)

    @staticmethod
    def _common(streams: Sequence[np.random.Generator]) -> tuple[Floats, Complexes]:
        """What every sample draws first: the uniforms of its JNR and scene, and its receiver noise."""
        common = np.empty((len(streams), _COMMON))
        noise = np.empty((len(streams), _NOISE), np.float32)
        for row, stream in enumerate(streams):
            stream.random(out=common[row])
            stream.standard_normal(out=noise[row], dtype=np.float32)
        return common, noise.view(np.complex64).reshape(-1, ELEMENTS, KEPT)

    def _receive(
        self, waves: Complexes, common: Floats, noise: Complexes, station: Ints, fixed_jnr: float | None
    ) -> Block:
        ends = self._front_ends
        columns = DrawColumns(common)
        law = self.config.jnr
        jnr_db = columns.between(law.low_db, law.high_db)
        if fixed_jnr is not None:
            jnr_db = np.full_like(jnr_db, fixed_jnr)
        scene = Scene.draw(columns, self.config.multipath, ends.sites[station])
        waves *= cis(ends.carrier_offset[station, None] * TIME)
        channel = scene.transfer(ends.coupling[station])  # (3)
        channel *= ends.response[station]  # (4)
        channel *= np.fft.fft(waves)[:, None]
        jammer = np.ascontiguousarray(np.fft.ifft(channel)[:, :, LEAD:])
        wanted = 10 ** (jnr_db / 10)  # (5)
        parts = jammer.view(np.float32).reshape(len(jammer), -1)
        got = np.einsum("ij,ij->i", parts, parts, dtype=np.float64) / (ELEMENTS * KEPT)
        noise_power = ends.noise_power(station, wanted)
        jammer *= np.sqrt(wanted / got).astype(np.float32)[:, None, None]
        noise *= np.sqrt(noise_power / 2).astype(np.float32)[:, None, None]
        noise += jammer
        return Block(
            recordings=ends.digitise(noise, station, wanted + noise_power),  # (6)
            jnr_db=jnr_db,
            azimuth_deg=np.rad2deg(scene.azimuth[:, 0]),
            elevation_deg=np.rad2deg(scene.elevation[:, 0]),
            k_factor_db=scene.k_factor_db,
        )


def _waves(waveform: type[Waveform], streams: Sequence[np.random.Generator]) -> Complexes:
    """Envelopes of one class, each from its own stream."""
    uniforms = np.empty((len(streams), waveform.uniforms))
    normals = np.empty((len(streams), waveform.normals), np.float32)
    for row, stream in enumerate(streams):
        stream.random(out=uniforms[row])
        stream.standard_normal(out=normals[row], dtype=np.float32)
    return waveform.draw(DrawColumns(uniforms)).signal(normals)
