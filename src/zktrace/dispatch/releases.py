"""Releases: the folder with what the copies of a shared model are made and read with.

    shared.safetensors       the shared model, byte for byte if it came as safetensors
    reference-CARRIER.bin    informed profile: the shared model's own readout, big-endian float64; of the
                             output carrier its scores, row after row
    probes.safetensors       feature carrier: the inputs whose features are read
    queries.safetensors      output carrier: its probes, and the support that turns features into scores
    proxy.safetensors, .json the server's images that copies are trained on, where copies are trained

All of them are for the operator alone (mode 0600): they are what a copy is told from another by.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import Profile
from zktrace.errors import MalformedFile, Refused
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.readouts.directions import Floats
from zktrace.readouts.scores import OutputReader
from zktrace.readouts.suspects import layer_names
from zktrace.readouts.weight import WeightReader
from zktrace.registry.readouts import (
    READOUT_LIMIT,
    read_readout,
    readout_digest,
)
from zktrace.registry.records import Layout
from zktrace.registry.workspace import Workspace

if TYPE_CHECKING:
    from zktrace.marking.feature import FeatureReader
    from zktrace.marking.output import OutputModelReader

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
        from zktrace.marking.output import OutputModelReader, Support  # noqa: PLC0415

        queries = folder.queries(layout)
        support = Support(images=queries.support, labels=queries.labels)
        return OutputModelReader(seed=seed, probes=queries.probes, support=support, reference=reference)
    from zktrace.marking.feature import FeatureReader  # noqa: PLC0415

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
