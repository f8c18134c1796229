"""The folder of a demo: what lies where, and whether it may be cleared, or shown."""

import json
import shutil
from pathlib import Path
from typing import Final

from zktrace.errors import Refused

WORKSPACE: Final = "workspace"  # the operator's
RUN: Final = "run"  # of the training run
EXPORT: Final = "registry.json"
REPORT: Final = "report.html"  # written last
_MARKER: Final = "zktrace-demo.txt"  # stands in a folder that a demo may clear


def clear(folder: Path) -> None:
    """Make the folder empty and ours; somebody else's is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARKER).is_file():
            raise Refused(f"{folder}: is not empty and not of a demo; name another folder with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKER).write_text("Everything in this folder was made by zktrace demo, which may clear it.\n")


def ended(folder: Path, *, seed: int) -> bool:
    """Whether a demo of this seed was told to its end there."""
    if not all((folder / name).is_file() for name in (_MARKER, REPORT)):
        return False
    try:
        spec = json.loads((folder / RUN / "spec.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(spec, dict) and spec.get("seed") == seed
