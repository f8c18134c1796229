"""Copies that are made to be fetched: files that are made again when they are gone, so the oldest go."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from zktrace.registry.workspace import Home
from zktrace.service.store import folder

LIMIT: Final = 4 << 30  # bytes, before the oldest go; and of the disk that are left free
YOUNG: Final = 600.0  # seconds since a copy was made or asked for: somebody is about to fetch it


def place_of(home: Home) -> Path:
    """Their folder."""
    return folder(home, "fetched")


def wanted(home: Home, path: Path) -> os.stat_result | None:
    """A copy that somebody asks for just now, which makes it young; None if it is gone."""
    try:
        if path.parent == place_of(home):
            os.utime(path)
        return path.stat()
    except OSError:
        return None


def make_room(place: Path) -> int:
    """Take away the oldest copies beyond the limit; how many of these were young.

    Young ones go only if the disk has no room for the limit without them.
    """
    size, early = 0, 0
    for path, found in _youngest_first(place):
        size += found.st_size
        if size <= LIMIT:
            continue
        young = found.st_mtime > time.time() - YOUNG
        if not young or shutil.disk_usage(place).free < LIMIT:
            path.unlink(missing_ok=True)
            early += young
    return early


def _youngest_first(place: Path) -> list[tuple[Path, os.stat_result]]:
    files = []
    for each in place.glob("*.safetensors"):
        with suppress(OSError):  # another worker was faster
            files.append((each, each.stat()))
    return sorted(files, key=lambda each: each[1].st_mtime, reverse=True)
