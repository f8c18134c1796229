"""The shared model of a release: a view of its file, found to be the one on record before it is used.

A model of gigabytes is hashed once, not once a copy: what was found is remembered as long as the file is the
same one, untouched since.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from zktrace.errors import Refused
from zktrace.models import ModelState, model_digest, open_model

_Mark = tuple[int, int, int, int, int]


@dataclass(slots=True, kw_only=True)
class SharedModel:
    """A file and the digest on record. Snapshots of one release share it."""

    path: Path
    digest: bytes
    _view: ModelState | None = field(default=None, repr=False)
    _of: _Mark | None = field(default=None, repr=False)  # the file that the view is of
    _right: bool = field(default=False, repr=False)

    def found(self) -> ModelState:
        """What lies there now, not hashed."""
        now = _mark(self.path)
        if self._view is None or now is None or now != self._of:
            self._right = False
            self._view = open_model(self.path)
            self._of = now if now == _mark(self.path) else None
        return self._view

    def checked(self) -> ModelState:
        """The model on record, or Refused."""
        view = self.found()
        if not self._right:
            if model_digest(view) != self.digest:
                raise Refused(f"{self.path}: not the shared model that the registry has on record")
            self._right = self._of is not None and self._of == _mark(self.path)
        return view


def _mark(path: Path) -> _Mark | None:
    """What changes when a file is written to or exchanged; None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
