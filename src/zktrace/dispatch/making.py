"""Making a release: a shared model is put on record, with how copies of it will be read.

Files come first and the record last, so a release on record is whole. Of one that fails nothing is left; one
that was killed is made again. A model that carries rows of earlier copies is refused (`lineage`).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import CARRIERS, NAMES, Profile, needs_training
from zktrace.derivation.streams import Stream
from zktrace.dispatch.lineage import check_unmarked
from zktrace.dispatch.releases import Pool, Queries, ReleaseFolder, release_folder
from zktrace.errors import InputError, Refused
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import claimed, read_bounded, write_atomic
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import layer_sizes
from zktrace.readouts.suspects import plain
from zktrace.readouts.weight import WeightReader
from zktrace.registry.ledger import check_name
from zktrace.registry.readouts import readout_bytes, readout_digest
from zktrace.registry.records import Layout, ReleaseRecord
from zktrace.registry.workspace import Workspace

ZEROS: Final = bytes(32)
SUPPORT: Final = 10  # images a class that turn features into scores
_FILE_LIMIT: Final = 1 << 33


def make_release(
    workspace: Workspace,
    model: Path,
    *,
    carriers: tuple[str, ...],
    profile: Profile = "informed",
    name: str | None = None,
    pool: Pool | None = None,
) -> ReleaseRecord:
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
        check_unmarked(workspace, shared)
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
        record = ReleaseRecord(
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


def _check_carriers(carriers: tuple[str, ...], profile: str, pool: Pool | None) -> None:
    if not carriers or len(set(carriers)) != len(carriers) or not set(carriers) <= set(NAMES):
        raise InputError(f"a release has carriers, each once, of {', '.join(NAMES)}")
    for each in carriers:
        if profile not in (able := CARRIERS[each].profiles):
            raise InputError(f"the {each} carrier has the profile {' and '.join(able)} only, not {profile}")
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
        from zktrace.learning.backbone import backbone_of  # noqa: PLC0415
        from zktrace.marking.feature import FeatureReader  # noqa: PLC0415

        dimension = backbone_of(plain(self.shared)).features
        images = _draw_probes(self.pool, length, self.draws)
        save_model(self.folder.probes_path, {"probes": images}, secret=True, replace=True)
        probes = model_digest(open_model(self.folder.probes_path))
        blank = FeatureReader(seed=self.seed, probes=images, profile=self.profile)
        return self._layout("feature", blank.project(self.shared), dimension=dimension, probes=probes)

    def output(self, length: int) -> Layout:
        from zktrace.marking.output import OutputModelReader, Support  # noqa: PLC0415

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
