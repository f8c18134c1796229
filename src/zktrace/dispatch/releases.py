"""Releases: a shared model put on record, and the folder with what its copies are made and read with.

    shared.safetensors       the shared model, byte for byte if it came as safetensors
    reference-CARRIER.bin    informed profile: the shared model's own readout, big-endian float64; of the
                             output carrier its scores, row after row
    probes.safetensors       feature carrier: the inputs whose features are read
    queries.safetensors      output carrier: its probes, and the support that turns features into scores
    proxy.safetensors, .json the server's images that copies are trained on, where copies are trained

Files come first and the record last, so a release on record is whole. Of one that fails nothing is left; one
that was killed is made again.
All of them are for the operator alone (mode 0600): they are what a copy is told from another by.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError, MalformedFile, Refused
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import claimed, read_bounded, write_atomic
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import layer_sizes
from zktrace.readouts.scores import OutputReader
from zktrace.readouts.suspects import layer_names, plain
from zktrace.readouts.weight import Profile, WeightReader
from zktrace.registry.ledger import check_name
from zktrace.registry.readouts import (
    READOUT_LIMIT,
    read_readout,
    readout_bytes,
    readout_digest,
)
from zktrace.registry.records import Layout, Release
from zktrace.registry.workspace import Workspace

if TYPE_CHECKING:
    from zktrace.carriers.feature import FeatureReader
    from zktrace.carriers.output import OutputModelReader

ZEROS: Final = bytes(32)
WRITTEN: Final = ("weight", "feature", "output")  # carriers that dispatch can write
SUPPORT: Final = 10  # images a class that turn features into scores
_FILE_LIMIT: Final = 1 << 33
_FACTS_LIMIT: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Server-held samples that copies are trained on, and what episodes of them look like."""

    images: NDArray[np.float32]  # (n, channels, height, width)
    labels: NDArray[np.int64]
    episodes: dict[str, Any]  # the fields of an EpisodicConfig
    note: str  # where the samples come from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queries:
    """What the output carrier asks a model, and the support that makes scores of features."""

    probes: NDArray[np.float32]
    support: NDArray[np.float32]
    labels: NDArray[np.int64]  # of the support: 0, 1, ..., the order of a probe's scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a state, whose digest the registry has."""
        return {"labels": self.labels, "probes": self.probes, "support": self.support}


@dataclass(frozen=True, kw_only=True)
class ReleaseFolder:
    """The files of one release."""

    path: Path

    @property
    def shared_path(self) -> Path:
        """The shared model."""
        return self.path / "shared.safetensors"

    def shared(self) -> ModelState:
        """The shared model's state, a view of the file."""
        return open_model(self.shared_path)

    def reference_path(self, carrier: str) -> Path:
        """The shared model's own readout on a carrier."""
        return self.path / f"reference-{carrier}.bin"

    def reference(self, layout: Layout) -> Floats | None:
        """The reference of a layout, checked against its digest; None in the paper's profile."""
        if layout.profile == "paper":
            return None
        path = self.reference_path(layout.carrier)
        values = read_readout(read_bounded(path, limit=8 * READOUT_LIMIT), what=str(path))
        if readout_digest(values) != layout.reference:
            raise MalformedFile(f"{path}: not the reference that the registry has on record")
        return values

    @property
    def probes_path(self) -> Path:
        """The probes of the feature carrier."""
        return self.path / "probes.safetensors"

    def probes(self, layout: Layout) -> NDArray[np.float32]:
        """The probes of a layout, checked against their digest."""
        state = open_model(self.probes_path)
        if model_digest(state) != layout.probes or "probes" not in state:
            raise MalformedFile(f"{self.probes_path}: not the probes that the registry has on record")
        return state["probes"]

    @property
    def queries_path(self) -> Path:
        """Probes and support of the output carrier."""
        return self.path / "queries.safetensors"

    def queries(self, layout: Layout) -> Queries:
        """Probes and support of a layout, checked against their digest."""
        state = open_model(self.queries_path)
        if model_digest(state) != layout.probes or set(state) != {"labels", "probes", "support"}:
            raise MalformedFile(f"{self.queries_path}: not the queries that the registry has on record")
        return Queries(probes=state["probes"], support=state["support"], labels=state["labels"])

    def save_pool(self, pool: Pool) -> None:
        """Keep the proxy pool for dispatch."""
        arrays: dict[str, NDArray[Any]] = {"images": pool.images, "labels": pool.labels}
        save_model(self.path / "proxy.safetensors", arrays, secret=True, replace=True)
        facts = json.dumps({"episodes": pool.episodes, "note": pool.note}, sort_keys=True, indent=1)
        write_atomic(self.path / "proxy.json", f"{facts}\n".encode(), secret=True, replace=True)

    @property
    def has_pool(self) -> bool:
        """Whether the release keeps images of the server's."""
        return (self.path / "proxy.json").exists()

    def pool(self) -> Pool:
        """The proxy pool; Refused if the release was made without one."""
        path = self.path / "proxy.json"
        if not path.exists():
            raise Refused(f"{self.path}: this release was made without proxy data, copies cannot be trained")
        try:
            facts = json.loads(read_bounded(path, limit=_FACTS_LIMIT))
            state = open_model(self.path / "proxy.safetensors")
            return Pool(
                images=state["images"], labels=state["labels"], episodes=facts["episodes"], note=facts["note"]
            )
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedFile(f"{path}: not the facts of a proxy pool") from error


def release_folder(workspace: Workspace, name: str) -> ReleaseFolder:
    """The files of a release of a workspace."""
    return ReleaseFolder(path=workspace.release_folder(name))


def make_release(
    workspace: Workspace,
    model: Path,
    *,
    carriers: tuple[str, ...],
    profile: Profile = "informed",
    name: str | None = None,
    pool: Pool | None = None,
) -> Release:
    """Put a shared model on record, with how copies of it will be read."""
    ledger = workspace.registry.ledger()
    name = next_name(ledger.releases) if name is None else check_name(name, "release")
    if name in ledger.releases:
        raise Refused(f"a release {name} exists already")
    _check_carriers(carriers, profile, pool)
    folder, custody = release_folder(workspace, name), workspace.custody
    with (
        claimed(folder.path, busy="this release is just being made", mode=0o700),
        _whole_or_gone(workspace, folder.path, name),
    ):
        shared = _keep_shared(model, folder.shared_path)
        if pool is not None:
            folder.save_pool(pool)
        number, root = len(ledger.releases), ledger.root
        layouts = []
        for carrier in carriers:
            making = _Making(
                folder=folder,
                shared=shared,
                profile=profile,
                pool=pool,
                seed=custody.direction_seed(carrier, number, root),
                draws=custody.probe_stream(carrier, number),
            )
            layouts.append(making.layout(carrier, custody.shape(carrier).length))
        record = Release(
            name=name, number=number, root=root, model=model_digest(shared), layouts=tuple(layouts)
        )
        workspace.registry.add(record)
    return record


@contextmanager
def _whole_or_gone(workspace: Workspace, folder: Path, name: str) -> Iterator[None]:
    """Remove the files of a release that failed, unless it came on record after all."""
    try:
        yield
    except BaseException:
        if name not in workspace.registry.ledger().releases:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def next_name(taken: dict[str, Any]) -> str:
    """r1, r2, ...: the first that is free."""
    number = 1
    while f"r{number}" in taken:
        number += 1
    return f"r{number}"


def needs_training(carriers: tuple[str, ...], profile: str) -> bool:
    """Whether copies are trained; the weight carrier's informed copies are not."""
    return profile == "paper" or not set(carriers) <= {"weight"}


def _check_carriers(carriers: tuple[str, ...], profile: str, pool: Pool | None) -> None:
    if not carriers or len(set(carriers)) != len(carriers) or not set(carriers) <= set(WRITTEN):
        raise InputError(f"a release has carriers, each once, of {', '.join(WRITTEN)}")
    if "output" in carriers and profile != "informed":
        raise InputError(
            "the output carrier is read against the shared model: it has the profile informed only"
        )
    if needs_training(carriers, profile) and pool is None:
        raise InputError("copies of this kind are trained: name the server's proxy data (--proxy)")


def _keep_shared(model: Path, path: Path) -> ModelState:
    """The shared model as a file of the release."""
    state = open_model(model)
    plain(state)  # refused now if copies could not be read later
    data = read_bounded(model, limit=_FILE_LIMIT)
    if data[8:9] == b"{":
        write_atomic(path, data, secret=True, replace=True)
    else:
        save_model(path, state, secret=True, replace=True)
    kept = open_model(path)
    if model_digest(kept) != model_digest(state):
        raise Refused(f"{model}: changed while it was copied")
    return kept


@dataclass(frozen=True, kw_only=True, eq=False)
class _Making:
    """A release on its way to the record."""

    folder: ReleaseFolder
    shared: ModelState
    profile: Profile
    pool: Pool | None
    seed: bytes  # of the directions
    draws: Stream  # of the probes

    def layout(self, carrier: str, length: int) -> Layout:
        """Write a carrier's files and say how it is read."""
        make = {"weight": self.weight, "feature": self.feature, "output": self.output}[carrier]
        return make(length)

    def weight(self, length: int) -> Layout:
        layers = layer_sizes(self.shared)
        _check_room(length, layers)
        blank = WeightReader(seed=self.seed, length=length, layers=layers, profile=self.profile)
        return self._layout("weight", blank.project(self.shared), dimension=sum(layers), layers=layers)

    def feature(self, length: int) -> Layout:
        from zktrace.carriers.feature import FeatureReader  # noqa: PLC0415
        from zktrace.learning.backbone import backbone_of  # noqa: PLC0415

        dimension = backbone_of(plain(self.shared)).features
        images = _draw_probes(self.pool, length, self.draws)
        save_model(self.folder.probes_path, {"probes": images}, secret=True, replace=True)
        probes = model_digest(open_model(self.folder.probes_path))
        blank = FeatureReader(seed=self.seed, probes=images, profile=self.profile)
        return self._layout("feature", blank.project(self.shared), dimension=dimension, probes=probes)

    def output(self, length: int) -> Layout:
        from zktrace.carriers.output import OutputModelReader, Support  # noqa: PLC0415

        queries = draw_queries(self.pool, length, self.draws)
        save_model(self.folder.queries_path, queries.arrays(), secret=True, replace=True)
        probes = model_digest(open_model(self.folder.queries_path))
        support = Support(images=queries.support, labels=queries.labels)
        blank = OutputModelReader(seed=self.seed, probes=queries.probes, support=support)
        scores = blank.scores(self.shared)
        return self._layout("output", scores.reshape(-1), dimension=support.classes, probes=probes)

    def _layout(
        self,
        carrier: str,
        values: Floats,
        *,
        dimension: int,
        layers: tuple[int, ...] = (),
        probes: bytes = ZEROS,
    ) -> Layout:
        informed = self.profile == "informed"
        if informed:
            path = self.folder.reference_path(carrier)
            write_atomic(path, readout_bytes(values), secret=True, replace=True)
        return Layout(
            carrier=carrier,
            profile=self.profile,
            dimension=dimension,
            layers=layers,
            reference=readout_digest(values) if informed else ZEROS,
            probes=probes,
        )


def _check_room(length: int, layers: tuple[int, ...]) -> None:
    room = sum(layers) - len(layers)
    if length > room:
        raise InputError(
            f"the weight carrier's code has {length} bits, the model's scales have room for {room}"
        )


def _draw_probes(pool: Pool | None, length: int, draws: Stream) -> NDArray[np.float32]:
    """Which of the pool's images are probes: a secret draw."""
    if pool is None or len(pool.images) < length:
        found = 0 if pool is None else len(pool.images)
        raise InputError(f"{length} probes are needed, the proxy data has {found} images")
    chosen = draws.sample(len(pool.images), length)
    return np.ascontiguousarray(pool.images[chosen], dtype=np.float32)


def draw_queries(pool: Pool | None, length: int, draws: Stream) -> Queries:
    """Support and probes of the output carrier, a secret draw: no image is both.

    Probes are of all classes alike, as far as there are images: where one class is most of the data, its
    images look alike to the model and could carry little.
    """
    if pool is None:
        raise InputError(f"{length} probes are needed, and there is no proxy data")
    classes, labels = np.unique(pool.labels, return_inverse=True)
    held = [
        _shuffled(np.flatnonzero(labels == each), draws)[: min(SUPPORT, int((labels == each).sum()) // 2)]
        for each in range(len(classes))
    ]
    if len(classes) < 2 or not all(len(each) for each in held):
        raise InputError(
            "the output carrier needs proxy data of two classes or more, with two images of each"
        )
    support = np.concatenate(held)
    rest = np.setdiff1d(np.arange(len(labels)), support)
    if len(rest) < length:
        raise InputError(
            f"{length} probes and {len(support)} images of a support are needed, "
            f"the proxy data has {len(labels)} images"
        )
    chosen = _evenly(rest, labels[rest], length, draws)
    return Queries(
        probes=np.ascontiguousarray(pool.images[chosen], dtype=np.float32),
        support=np.ascontiguousarray(pool.images[support], dtype=np.float32),
        labels=labels[support].astype(np.int64),
    )


def _evenly(
    places: NDArray[np.int64], labels: NDArray[np.int64], count: int, draws: Stream
) -> NDArray[np.int64]:
    """Some of the places, as many of each label as of any other while there are, in random order."""
    order = draws.permutation(len(places))
    turn = np.zeros(len(places), dtype=np.int64)  # the how-manieth of its label a place is, in that order
    for each in np.unique(labels):
        own = order[labels[order] == each]
        turn[own] = np.arange(len(own))
    first = order[np.argsort(turn[order], kind="stable")][:count]
    return _shuffled(places[first], draws)


def _shuffled(values: NDArray[np.int64], draws: Stream) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = values[draws.permutation(len(values))]
    return chosen


Reader: TypeAlias = "WeightReader | FeatureReader | OutputModelReader"


def reader_of(workspace: Workspace, release: str, carrier: str) -> Reader:
    """What reads suspects of a release on one carrier. Torch is needed for all but the weight carrier."""
    layout = layout_of(workspace, release, carrier)
    folder = release_folder(workspace, release)
    seed = seed_of(workspace, release, carrier)
    profile: Profile = "paper" if layout.profile == "paper" else "informed"
    reference = folder.reference(layout)
    if carrier == "weight":
        return WeightReader(
            seed=seed,
            length=workspace.custody.shape(carrier).length,
            layers=layout.layers,
            profile=profile,
            reference=reference,
            names=layer_names(folder.shared()),
        )
    if carrier == "output":
        from zktrace.carriers.output import OutputModelReader, Support  # noqa: PLC0415

        queries = folder.queries(layout)
        support = Support(images=queries.support, labels=queries.labels)
        return OutputModelReader(seed=seed, probes=queries.probes, support=support, reference=reference)
    from zktrace.carriers.feature import FeatureReader  # noqa: PLC0415

    return FeatureReader(
        seed=seed,
        probes=folder.probes(layout),
        profile=profile,
        reference=reference,
        dimension=layout.dimension,
    )


def scores_reader_of(workspace: Workspace, release: str) -> OutputReader:
    """What reads a suspect that was only queried. No torch."""
    layout = layout_of(workspace, release, "output")
    reference = release_folder(workspace, release).reference(layout)
    if reference is None:
        raise Refused(f"the output carrier of {release} has no reference")
    return OutputReader(
        seed=seed_of(workspace, release, "output"),
        length=workspace.custody.shape("output").length,
        classes=layout.dimension,
        reference=reference,
    )


def seed_of(workspace: Workspace, release: str, carrier: str) -> bytes:
    """The seed of a release's directions on one carrier."""
    record = workspace.registry.ledger().release(release)
    return workspace.custody.direction_seed(carrier, record.number, record.root)


def layout_of(workspace: Workspace, release: str, carrier: str) -> Layout:
    """How a carrier of a release is read, or Refused."""
    layout = workspace.registry.ledger().release(release).layout(carrier)
    if layout is None:
        raise Refused(f"copies of {release} do not carry {carrier}")
    return layout
