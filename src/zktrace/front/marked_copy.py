"""A copy as it was handed out."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from zktrace.errors import Refused
from zktrace.models import ModelState, model_digest, open_model, save_model


@dataclass(frozen=True, kw_only=True)
class MarkedCopy:
    """One station's copy of a release."""

    station: str
    release: str
    path: Path  # in the workspace
    digest: bytes
    weak: tuple[str, ...] | None  # carriers on which it would not be named by itself; None: it was found

    @cached_property
    def arrays(self) -> ModelState:
        """Name -> array; Refused if the file is no longer the copy that is on record."""
        state = open_model(self.path)
        if model_digest(state) != self.digest:
            raise Refused(f"{self.path}: is not the copy of {self.station} that is on record")
        return state

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the copy, as safetensors, for the station."""
        save_model(Path(path), self.arrays, secret=True, replace=replace)
        return Path(path)
