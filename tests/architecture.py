"""The cut of the house: its rooms in their order, who imports whom, and who is passed on the way.

    python -m tests.architecture            # print what docs/cut.md has between its markers
    python -m tests.architecture --write    # and put it there

`test_architecture.py` holds the house to it.
"""

import argparse
import ast
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from inspect import CO_OPTIMIZED
from io import StringIO
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "zktrace"
PAGE = ROOT / "docs" / "cut.md"
END = "\n\n<!-- end -->"

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
    "transparency",
    "registry",
    "releases",
    "attestations",
    "evidence",
    "tracing",
    "court",
)
TORCH_SIDE = ("learning", "marking", "dispatch", "guarding", "federation", "attacks", "baselines", "studies")
FACES = ("report", "front", "demo", "service", "cli")
ORDER = LIGHT + TORCH_SIDE + FACES
LIGHT_TOO = {  # of what stands below the line: closed-form copies and the front door need no torch
    "marking": {"settings", "writer", "weight", "copies", "spread"},
    "guarding": {"broadcasts", "guard", "subspace"},
    "dispatch": {"copies", "dispatching", "standing"},
    "front": {"given", "credential", "case", "workspace", "judging", "receipts", "attesting"},
}

# Rooms that may see less than their place allows.
ONLY = {
    "attacks": {"errors", "learning"},
    "readouts": {"errors", "primitives", "derivation", "carriers", "models"},
    "transparency": {"errors", "primitives"},
    "attestations": {"errors", "primitives", "models", "transparency", "registry"},
    "court": set(LIGHT) - {"releases", "tracing"},
    "report": set(ORDER) - {"front", "demo", "service", "cli", "attacks"},
}
STORES = SOURCE / "registry" / "stores"  # the one place that knows a database
MIGRATIONS = SOURCE / "service" / "migrations"  # and the one that changes tables
HEAVY = ("torch", "flwr", "nvflare", "sqlalchemy", "fastapi", "matplotlib", "ray")

FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem == "errors")

Graph = dict[str, set[str]]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_of(path: Path, source: Path = SOURCE) -> str:
    """The name under which a file is imported."""
    parts = ("zktrace", *path.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of everything that a file imports, anywhere in it; without a name, the module itself."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    """Rooms of ours that a file imports, anywhere in it."""
    names = (f"zktrace.{name}" if name and module == "zktrace" else module for module, name in imports(path))
    return {name.split(".")[1] for name in names if name.startswith("zktrace.")}


def room_graph() -> Graph:
    """Each room and those that it imports, itself aside."""
    graph: Graph = {room: set() for room in ORDER if any(room_of(path) == room for path in FILES)}
    for path in FILES:
        graph[room_of(path)] |= imported_rooms(path) - {room_of(path)}
    return graph


def module_graph(source: Path = SOURCE) -> Graph:
    """Each module and those of ours that it imports, at the top or inside a function.

    What a package's own file offers counts as an import of that file. The front door is left out.
    """
    files = {module_of(path, source): path for path in source.rglob("*.py") if path.parent != source}
    graph: Graph = {}
    for module, path in files.items():
        wanted = {f"{of}.{name}" if f"{of}.{name}" in files else of for of, name in imports(path)}
        graph[module] = (wanted & files.keys()) - {module}
    return graph


def folded(graph: Mapping[str, Iterable[str]], package: str) -> Graph:
    """What stands directly in a package, a subpackage being one thing, and who imports whom there."""

    def child(module: str) -> str:
        rest = module.removeprefix(f"{package}.") if module.startswith(f"{package}.") else ""
        return rest.split(".")[0]

    out: Graph = {child(module): set() for module in graph if child(module)}
    for module, wanted in graph.items():
        if child(module):
            out[child(module)] |= {child(each) for each in wanted} - {"", child(module)}
    return out


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Some cycle of a graph, its first node repeated at its end; empty if there is none."""
    done: set[str] = set()

    def search(node: str, way: list[str]) -> list[str]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return []
        for follower in sorted(graph.get(node, ())):
            if found := search(follower, [*way, node]):
                return found
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := search(node, []))), [])


def about(room: str) -> str:
    """The first sentence of a room's own description."""
    path = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def drawn_rooms() -> str:
    """The rooms in their order, and whom each imports, as a table."""
    lines = ["| room | is | imports |", "|---|---|---|"]
    for room, wanted in room_graph().items():
        names = ", ".join(sorted(wanted, key=ORDER.index)) or "-"
        lines.append(f"| `{room}` | {about(room)} | {names} |")
    return "\n".join(lines)


def entered(call: Callable[[], object]) -> list[str]:
    """Rooms in the order in which a call first runs a function of theirs; bodies of modules do not count."""
    rooms: dict[str, None] = {}
    home = f"{SOURCE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(home):
            rooms.setdefault(room_of(Path(code.co_filename)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(rooms)


class House:
    """A small federation in a temporary folder, run by the very commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.operator = folder / "operator"
        self.run("init", self.operator, "--title", "Walks", "--carrier", "weight")

    def run(self, *arguments: object) -> str:
        """What a command prints; it has to succeed."""
        from zktrace.cli.app import run

        with redirect_stdout(StringIO()) as printed:
            code = run([str(each) for each in arguments])
        assert code == 0, f"{arguments}: exit {code}\n{printed.getvalue()}"
        return printed.getvalue().strip()

    def enrol(self, name: str) -> list[str]:
        """A credential's way: made, asked with, enrolled; its holder signs with it, and somebody verifies."""
        return entered(lambda: self._enrol(name))

    def _enrol(self, name: str) -> None:
        key, public, request, proof = (
            self.folder / f"{name}.{kind}" for kind in ("key", "pub", "request", "proof")
        )
        self.run("credential", "new", name, "--dir", self.folder)
        offer = self.run("offer", "--workspace", self.operator)
        self.run("credential", "request", "--key", key, "--offer", offer, "--out", request)
        self.run("enrol", name, "--request", request, "--workspace", self.operator)
        self.run("credential", "prove", "--key", key, "--message", request, "--out", proof)
        self.run("credential", "verify", "--public", public, "--message", request, proof)

    def dispatch(self) -> None:
        """A shared model of eight layers, and everybody's copy."""
        import numpy as np
        from safetensors.numpy import save_file

        layers = {f"bn{i}": np.random.default_rng(i).normal(1, 0.1, 256).astype("f4") for i in range(8)}
        kinds = ("weight", "bias", "running_mean", "running_var")
        shared = self.folder / "shared.safetensors"
        save_file({f"{name}.{kind}": abs(scale) for name, scale in layers.items() for kind in kinds}, shared)
        self.run("release", shared, "--carrier", "weight", "--workspace", self.operator)
        self.run("dispatch", "--all", "--workspace", self.operator, "--out", self.folder / "copies")

    def trace(self, name: str) -> list[str]:
        """A suspect's way at the operator's: somebody's copy, as it is."""
        return entered(
            lambda: self.run("trace", self.copy(name), "--workspace", self.operator, "--out", self.case(name))
        )

    def judge(self, name: str) -> list[str]:
        """A suspect's way at the judge's."""
        head = self.run("log", "head", "--workspace", self.operator)
        given = ("--suspect", self.copy(name), "--shared", self.folder / "shared.safetensors")
        return entered(lambda: self.run("judge", self.case(name), "--head", head, *given))

    def copy(self, name: str) -> Path:
        return self.folder / "copies" / f"{name}.safetensors"

    def case(self, name: str) -> Path:
        return self.folder / f"{name}.zkt.json"


def walks(folder: Path) -> dict[str, list[str]]:
    """Rooms on the way of a credential, and of a suspect at the operator's and at the judge's.

    Everything is done for another station first: what a first import runs is no part of a way.
    """
    import zktrace

    assert Path(zktrace.__file__).parent == SOURCE, f"{zktrace.__file__} is another house: set PYTHONPATH"
    house = House(folder)
    house.enrol("alpha")
    credential = house.enrol("bravo")
    house.dispatch()
    house.trace("alpha")
    house.judge("alpha")
    return {"credential": credential, "trace": house.trace("bravo"), "judge": house.judge("bravo")}


def drawn_walk(rooms: Iterable[str], before: str) -> str:
    """A walk as a table. What a page says of a room is kept; a room that is new there says what it is."""
    said = dict(re.findall(r"^\| \d+ \| `(\w+)` \| (.*) \|$", before, re.MULTILINE))
    lines = [
        f"| {place} | `{room}` | {said.get(room) or about(room)} |" for place, room in enumerate(rooms, 1)
    ]
    return "\n".join(["| | room | what happens there |", "|---|---|---|", *lines])


def parts(page: str) -> dict[str, str]:
    """What stands between the markers of a page, by its name."""
    return dict(re.findall(r"<!-- begin: (\w+) -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL))


def drawn(page: str) -> dict[str, str]:
    """What should stand there."""
    before = parts(page)
    with tempfile.TemporaryDirectory() as folder:
        found = walks(Path(folder))
    return {"rooms": drawn_rooms()} | {
        name: drawn_walk(rooms, before.get(name, "")) for name, rooms in found.items()
    }


def rewritten(page: str, new: Mapping[str, str]) -> str:
    """The page with new parts."""
    for name, text in new.items():
        start = f"<!-- begin: {name} -->\n\n"
        head, found, tail = page.partition(start)
        assert found, f"{PAGE.name} has no place for {name}"
        page = f"{head}{start}{text}{tail[tail.index(END) :]}"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Print the rooms, who imports whom, and the walks through them."
    )
    parser.add_argument("--write", action="store_true", help=f"put them into {PAGE.relative_to(ROOT)}")
    write = parser.parse_args().write
    page = PAGE.read_text()
    new = drawn(page)
    print(*(f"{name}\n\n{text}" for name, text in new.items()), sep="\n\n")
    if write:
        PAGE.write_text(rewritten(page, new))


if __name__ == "__main__":
    main()
