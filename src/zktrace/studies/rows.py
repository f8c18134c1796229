"""Saved rows: one JSON object a line, each with the trial it answers and where it came from.

A row is never edited, and no trial is given two. A study that is run again finds the trials that have a row
and does the others.
"""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import zktrace
from zktrace.errors import MalformedFile, Refused
from zktrace.primitives.files import read_bounded

_LARGEST = 1 << 28  # bytes of a file of rows
_PACKAGES = ("numpy", "torch", "python-flint")

Facts = Mapping[str, Any]


def trial_id(trial: Facts) -> str:
    """What tells a trial from others."""
    return hashlib.sha256(json.dumps(trial, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A trial, its outcome, and where both came from."""

    trial: dict[str, Any]
    outcome: dict[str, Any]
    origin: dict[str, Any]

    @property
    def id(self) -> str:
        """The trial's."""
        return trial_id(self.trial)


class Rows:
    """A file of rows that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All rows, oldest first; a last line that a killed writer left unfinished does not count."""
        if not self.path.exists():
            return []
        lines = read_bounded(self.path, limit=_LARGEST).split(b"\n")
        try:
            return [Row(**json.loads(line)) for line in lines[:-1] if line]
        except (ValueError, TypeError) as error:
            raise MalformedFile(f"{self.path}: a line that is no row of a study") from error

    def done(self) -> set[str]:
        """The trials that have a row."""
        return {row.id for row in self.read()}

    def add(self, trial: Facts, outcome: Mapping[str, Any], seconds: float | None = None) -> Row | None:
        """Write a row behind the others, or None: another process did the same trial meanwhile."""
        took = {} if seconds is None else {"seconds": seconds}
        row = Row(trial=dict(trial), outcome=dict(outcome), origin=origin() | took)
        facts = {"trial": row.trial, "outcome": row.outcome, "origin": row.origin}
        line = json.dumps(facts, sort_keys=True).encode() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed: one writer at a time
                return row if self._append(handle, row.id, line) else None
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise Refused(f"{self.path}: cannot be written ({reason})") from error

    def _append(self, handle: BinaryIO, key: str, line: bytes) -> bool:
        if key in self.done():
            return False
        handle.truncate(self._whole())  # a killed writer may have left half a line
        handle.write(line)
        handle.flush()
        os.fsync(handle.fileno())
        return True

    def _whole(self) -> int:
        """Bytes up to the end of the last whole line."""
        return read_bounded(self.path, limit=_LARGEST).rfind(b"\n") + 1


def origin() -> dict[str, Any]:
    """Versions and commit of what is running."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        "zktrace": zktrace.__version__,
        **{name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source tree, with a plus sign where it was changed since; None outside of one."""
    folder = Path(zktrace.__file__).parent
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],  # noqa: S607
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
