"""The cut of the house: imports point up the life cycle, and the light core stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "zktrace"

# The order of the life cycle (docs/adr/0001). A room may import those before it.
LIGHT = (
    "errors",
    "primitives",
    "derivation",
    "credentials",
    "codes",
    "carriers",
    "certificates",
    "models",
    "readouts",
    "registry",
    "evidence",
    "tracing",
    "judge",
)
TORCH_SIDE = ("learning", "marking", "federation", "dispatch", "attacks", "baselines", "studies", "demo")
FACES = ("report", "service", "cli")
ORDER = LIGHT + TORCH_SIDE + FACES

# Rooms that may see less than their place allows.
ONLY = {
    "attacks": {"errors", "learning"},
    "readouts": {"errors", "primitives", "carriers", "models"},
    "judge": {
        "errors",
        "primitives",
        "derivation",
        "credentials",
        "codes",
        "carriers",
        "certificates",
        "models",
        "readouts",
        "registry",
        "evidence",
    },
    "report": set(ORDER) - {"service", "cli", "attacks"},
}
STORES = SOURCE / "registry" / "stores"  # the one place that knows a database
HEAVY = ("torch", "flwr", "sqlalchemy", "fastapi", "matplotlib", "ray")


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of ours that a file imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names = [f"zktrace.{alias.name}" for alias in node.names] if module == "zktrace" else [module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("zktrace.")}
    return rooms


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem == "errors")


def test_every_room_has_its_place() -> None:
    found = {room_of(path) for path in FILES}
    assert found <= set(ORDER)
    assert {"errors", "primitives", "credentials", "models", "cli"} <= found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_point_up(path: Path) -> None:
    room = room_of(path)
    allowed = set(ORDER[: ORDER.index(room) + 1])
    allowed = (allowed & ONLY.get(room, allowed)) | {room}
    assert imported_rooms(path) <= allowed


def fresh(code: str) -> str:
    """Output of a new interpreter."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("room", [room for room in LIGHT if (SOURCE / room).exists() or room == "errors"])
def test_a_light_room_loads_nothing_heavy(room: str) -> None:
    """Every module of the room, in a fresh interpreter."""
    modules = [
        ".".join(("zktrace", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in FILES
        if room_of(path) == room and path.stem != "__init__" and STORES not in path.parents
    ]
    loaded = fresh(f"import sys, {', '.join(modules)}; print(*sorted(sys.modules))").split()
    assert not set(HEAVY) & {name.split(".")[0] for name in loaded}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_stores_know_a_database(path: Path) -> None:
    named = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert STORES in path.parents or not {"sqlalchemy", "psycopg", "sqlite3"} & named


def test_help_and_import_load_no_numpy() -> None:
    """What keeps `zktrace --help` quick: arrays are imported by the commands that need them."""
    loaded = fresh("import sys, zktrace, zktrace.cli.app; print(*sys.modules)").split()
    assert not {"numpy", "flint", "safetensors", *HEAVY} & set(loaded)


# Built-in exceptions say nothing of whose failure it is: `except Error` must catch all of ours.
BARE = {"Exception", "ValueError", "TypeError", "KeyError", "IndexError", "LookupError", "RuntimeError"}
STILL_BARE = {
    "federation/flower/records.py",
    "learning/data/gnss/draws.py",
    "primitives/canonical.py",
    "primitives/merkle.py",
}


def raised(path: Path) -> set[str]:
    """Names of the exceptions that a file raises by their class or by an instance made on the spot."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise):
            named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found |= {named.id} if isinstance(named, ast.Name) else set()
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_failure_is_in_the_tree(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    assert bool(raised(path) & BARE) == (place in STILL_BARE)


# A module is one idea, a function one thought; a command's list of options is no part of its body.
LONGEST_MODULE = 350
LONGEST_BODY = 60
STILL_LONG = {"attacks/distill.py", "cli/judge.py: judge", "cli/trace.py: trace"}


def long_parts(path: Path) -> set[str]:
    """The module, if it is too long, and the functions whose bodies are."""
    place, text = path.relative_to(SOURCE).as_posix(), path.read_text()
    found = {place} if len(text.splitlines()) > LONGEST_MODULE else set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.body[0].lineno + 1
            found |= {f"{place}: {node.name}"} if lines > LONGEST_BODY else set()
    return found


def test_nothing_is_too_long() -> None:
    assert set().union(*(long_parts(path) for path in FILES)) == STILL_LONG
