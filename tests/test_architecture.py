"""The cut of the house: imports point up the life cycle, and the light core stays light."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from architecture import (
    FILES,
    HEAVY,
    LIGHT,
    LIGHT_TOO,
    MIGRATIONS,
    ONLY,
    ORDER,
    PAGE,
    ROOT,
    SOURCE,
    STORES,
    cycle,
    drawn_walk,
    entered,
    folded,
    imported_rooms,
    imports,
    module_graph,
    module_of,
    parts,
    room_graph,
    room_of,
)
from zktrace.carriers import CARRIERS


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


@pytest.mark.parametrize("room", [*LIGHT, *LIGHT_TOO])
def test_a_light_room_loads_nothing_heavy(room: str) -> None:
    """Every module of the room that is light, in a fresh interpreter."""
    modules = [
        module_of(path)
        for path in FILES
        if room_of(path) == room
        and path.stem != "__init__"
        and STORES not in path.parents
        and path.stem in LIGHT_TOO.get(room, {path.stem})
    ]
    assert modules
    loaded = fresh(f"import sys, {', '.join(modules)}; print(*sorted(sys.modules))").split()
    assert not set(HEAVY) & {name.split(".")[0] for name in loaded}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_stores_know_a_database(path: Path) -> None:
    named = {module.split(".")[0] for module, _ in imports(path)}
    assert STORES in path.parents or not {"sqlalchemy", "psycopg", "sqlite3"} & named
    assert MIGRATIONS in path.parents or "alembic" not in named


def test_help_and_import_load_no_numpy() -> None:
    """What keeps `zktrace --help` quick: arrays are imported by the commands that need them."""
    loaded = fresh("import sys, zktrace, zktrace.cli.app; print(*sys.modules)").split()
    assert not {"numpy", "flint", "safetensors", *HEAVY} & set(loaded)


module_graph_of_the_house = cache(module_graph)
PACKAGES = sorted({module_of(path).rsplit(".", 1)[0] for path in FILES})


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_has_a_cycle(package: str) -> None:
    """Rooms, and modules and subpackages of a room; an import inside a function is one like any other."""
    assert cycle(folded(module_graph_of_the_house(), package)) == []


def test_a_cycle_is_found_also_behind_a_function_and_between_subpackages(tmp_path: Path) -> None:
    texts = {
        "room/a.py": "from zktrace.room.b import name",
        "room/b.py": "def lazy():\n    from zktrace.room import a",
        "other/x/one.py": "import zktrace.other.y.two",
        "other/y/two.py": "",
        "other/y/three.py": "from zktrace.other.x.one import name",
        "third/c.py": "from zktrace import room",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = module_graph(tmp_path)
    assert cycle(graph) == ["zktrace.room.a", "zktrace.room.b", "zktrace.room.a"]
    assert cycle(folded(graph, "zktrace.other")) == ["x", "y", "x"]
    assert cycle(folded(graph, "zktrace.third")) == []
    assert cycle(folded(graph, "zktrace")) == []


def test_the_graph_has_what_files_import() -> None:
    graph = room_graph()
    assert list(graph) == [room for room in ORDER if room in graph]
    assert graph["attacks"] <= {"errors", "learning"}
    assert {"evidence", "certificates"} <= graph["court"]
    assert graph["errors"] == set()


def test_a_walk_has_rooms_in_the_order_of_first_calls() -> None:
    from zktrace.models import ModelState, model_digest

    assert entered(lambda: model_digest(ModelState([]))) == ["models", "primitives"]
    assert entered(lambda: None) == []


def test_a_page_keeps_what_it_says_of_a_room_and_new_rooms_say_what_they_are() -> None:
    before = "| 1 | `models` | opens the file |\n| 2 | `gone` | was here |"
    after = drawn_walk(["carriers", "models"], before)
    assert "| 2 | `models` | opens the file |" in after
    assert "| 1 | `carriers` | What a carrier is" in after
    assert "gone" not in after


def test_the_page_of_the_cut_is_up_to_date() -> None:
    """Rooms, imports and walks as `python -m tests.architecture` finds them in a fresh interpreter."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.architecture"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    shown = parts(PAGE.read_text())
    assert list(shown) == ["rooms", "credential", "trace", "judge"]
    wanted = "\n\n".join(f"{name}\n\n{text}" for name, text in shown.items())
    assert ran.stdout.strip() == wanted, "python -m tests.architecture --write"


# Built-in exceptions say nothing of whose failure it is: `except Error` must catch all of ours.
BARE = {"Exception", "ValueError", "TypeError", "KeyError", "IndexError", "LookupError", "RuntimeError"}


def raised(path: Path) -> set[str]:
    """Names of the exceptions that a file raises by their class or by an instance made on the spot.

    A mapping of ours says KeyError where every mapping does.
    """
    tree, found = ast.parse(path.read_text()), set()
    lookups = [each for each in ast.walk(tree) if getattr(each, "name", "") == "__getitem__"]
    spared = {node for each in lookups for node in ast.walk(each)}
    for node in set(ast.walk(tree)) - spared:
        if isinstance(node, ast.Raise):
            named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found |= {named.id} if isinstance(named, ast.Name) else set()
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_failure_is_in_the_tree(path: Path) -> None:
    assert not raised(path) & BARE


# A module is one idea, a function one thought; a command's list of options is no part of its body.
LONGEST_MODULE = 350
LONGEST_BODY = 60


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
    assert set().union(*(long_parts(path) for path in FILES)) == set()


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_class_name_stands_for_two_things() -> None:
    known: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                known.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: places for name, places in known.items() if len(places) > 1} == {}


def test_records_end_in_record() -> None:
    from zktrace.registry.records import KINDS

    assert all(kind.__name__ == f"{name.capitalize()}Record" for name, kind in KINDS.items())


def compared(path: Path) -> list[int]:
    """Lines of a file that compare something with the name of a carrier, or look for one by it."""
    names, found = set(CARRIERS), []
    for node in ast.walk(ast.parse(path.read_text())):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            sides = [node.slice]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        constants = (each for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant))
        found += [each.lineno for each in constants if each.value in names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_room_compares_the_name_of_a_carrier(path: Path) -> None:
    """What depends on a carrier is asked of the table. (A BatchNorm layer has a part called weight, too.)"""
    named = path.relative_to(SOURCE).as_posix()
    scales = {"attacks/scales.py", "attacks/rewrite.py", "readouts/sizing.py", "readouts/placing.py"}
    assert named in scales or compared(path) == []
