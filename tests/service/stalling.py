"""Investigations in processes of their own that stand still in the middle, until they are killed or let go.

Python loads a `sitecustomize` from the path of whoever starts it, and so do the processes that it starts.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CODE = '''
import importlib.abc, importlib.util, os, sys, time
from pathlib import Path

PLACE = Path({place!r})

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "zktrace.tracing.protocol":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def loaded(module):
            load(module)
            honest = module.investigate

            def investigate(*given, **named):
                """The price is paid, and nothing is scored: the first one here waits."""
                try:
                    (PLACE / "at").symlink_to(str(os.getpid()))
                except FileExistsError:
                    return honest(*given, **named)
                while not (PLACE / "go").exists():
                    time.sleep(0.02)
                return honest(*given, **named)

            module.investigate = investigate

        spec.loader.exec_module = loaded
        return spec

sys.meta_path.insert(0, Finder())
'''


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """The first investigation of all processes."""

    place: Path

    def process(self) -> int | None:
        """Which process stands still, once one does."""
        at = self.place / "at"
        return int(os.readlink(at)) if at.is_symlink() else None

    def go(self) -> None:
        """Let it go on."""
        (self.place / "go").touch()


@contextmanager
def stalling(folder: Path) -> Iterator[Stalled]:
    """Of all processes that are started within the block."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_CODE.format(place=str(folder)))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{before}" if before else str(folder)
    try:
        yield Stalled(place=folder)
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def until(holds: Callable[[], object]) -> None:
    """Patience, on a machine that is busy."""
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")
