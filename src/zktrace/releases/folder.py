"""The folder of a release: with what the copies of a shared model are made and read.

    shared.safetensors       the shared model, byte for byte if it came as safetensors
    reference-CARRIER.bin    informed profile: what the shared model says by itself, big-endian float64
    probes.safetensors       feature carrier: the inputs whose features are read
    queries.safetensors      output carrier: its probes, and the support that turns features into scores
    proxy.safetensors, .json the server's images that copies are trained on, where copies are trained

All of them are for the operator alone (mode 0600): they are what a copy is told from another by.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from zktrace.carriers import carrier
from zktrace.errors import MalformedFile, Refused
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.readouts.directions import Floats
from zktrace.readouts.samples import Pool
from zktrace.registry.readouts import READOUT_LIMIT, read_readout, readout_bytes, readout_digest
from zktrace.registry.records import Layout

_FACTS_LIMIT: Final = 1 << 16


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

    def reference_path(self, name: str) -> Path:
        """What the shared model says by itself on a carrier."""
        return self.path / f"reference-{name}.bin"

    def save_reference(self, name: str, values: Floats) -> bytes:
        """Keep it; its digest."""
        write_atomic(self.reference_path(name), readout_bytes(values), secret=True, replace=True)
        return readout_digest(values)

    def reference(self, layout: Layout) -> Floats | None:
        """The reference of a layout, checked against its digest; None if none was kept."""
        if not layout.referred:
            return None
        path = self.reference_path(layout.carrier)
        values = read_readout(read_bounded(path, limit=8 * READOUT_LIMIT), what=str(path))
        if readout_digest(values) != layout.reference:
            raise MalformedFile(f"{path}: not the reference that the registry has on record")
        return values

    def probes_path(self, name: str) -> Path:
        """What a network is asked for a carrier."""
        return self.path / carrier(name).probes

    def save_probes(self, name: str, probes: Mapping[str, NDArray[Any]]) -> ModelState:
        """Keep them; the state that is now on the disk."""
        save_model(self.probes_path(name), probes, secret=True, replace=True)
        return open_model(self.probes_path(name))

    def probes(self, layout: Layout) -> ModelState | None:
        """The probes of a layout, checked against their digest; None for a carrier without any."""
        if not carrier(layout.carrier).probes:
            return None
        path = self.probes_path(layout.carrier)
        state = open_model(path)
        if model_digest(state) != layout.probes:
            raise MalformedFile(f"{path}: not the probes that the registry has on record")
        return state

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
