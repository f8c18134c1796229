"""Writers know words, not stations: nothing in the room can reach a code, a key or a registry."""

import ast
from pathlib import Path

import pytest

import zktrace.marking

FILES = sorted(Path(zktrace.marking.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_carrier_reaches_a_code(path: Path) -> None:
    modules = {
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    modules -= {"zktrace.derivation.streams"}  # numbers from a seed that is given: no key is beside it
    rooms = {module.split(".")[1] for module in modules if module.startswith("zktrace.")}
    assert rooms <= {"errors", "primitives", "models", "readouts", "learning", "carriers", "marking"}
