"""Vectors of the specifications and of two public programs: tests/vectors/README.md has their sources."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "vectors" / "c2sp.json"


def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found
