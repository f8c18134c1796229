"""Processes that enrol and are killed, as a program of its own in which a fork is cheap.

Prints one JSON object with what it saw; the test looks at what the log says.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from registry.small import SHAPES, add_station
from zktrace.errors import Error
from zktrace.registry import cache
from zktrace.registry.registry import Registry
from zktrace.registry.stores.sql import SqlStore
from zktrace.registry.workspace import Home


def enrol_in_eight(url: str, each: int, kept: Path | None = None) -> dict[str, object]:
    """Eight processes that enrol `each` stations at the same time, with one cache in `kept`, or with none."""
    cache.LEAST = 1  # type: ignore[misc]
    gate_read, gate_write = os.pipe()
    pids = []
    for who in range(8):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(gate_write)
                os.read(gate_read, 1)  # ends when all have been started
                for i in range(each):
                    add_station(Registry(SqlStore(url), cache=kept), f"p{who}-{i}")
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(gate_write)
    return {"codes": [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]}


def kill_while_enrolling(url: str, times: int, seed: int) -> dict[str, object]:
    """A process enrols in a loop and is killed; after each kill the log is whole and holds what it said."""
    rng = random.Random(seed)
    lost: list[str] = []
    extra = 0
    for attempt in range(times):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            registry = Registry(SqlStore(url))
            for i in range(10_000):
                add_station(registry, f"k{attempt}-{i}")
                os.write(write_end, f"k{attempt}-{i}\n".encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as handle:
            told = {handle.readline().strip() for _ in range(attempt % 3)}
            time.sleep(rng.uniform(0.0, 0.03))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            told |= set(handle.read().split())
        registry = Registry(SqlStore(url))
        registry.verify()
        kept = {name for name in registry.ledger().by_row if name.startswith(f"k{attempt}-")}
        lost += sorted(told - kept)
        extra = max(extra, len(kept - told))
    return {"lost": lost, "extra": extra, "stations": len(Registry(SqlStore(url)).ledger().by_row)}


def kill_while_making_a_workspace(folder: Path, times: int, seed: int) -> dict[str, object]:
    """Kill `init` anywhere; whatever is left is finished by doing it again, with one and the same key."""
    rng = random.Random(seed)
    unfinished = 0
    for attempt in range(times):
        root = folder / str(attempt)
        pid = os.fork()
        if pid == 0:
            Home.create(root, title="t", carriers=SHAPES)
            os._exit(0)
        stage = root / (".zktrace-init", "secrets/code.key", "registry.db")[attempt % 3]
        while not stage.exists() and not (root / "zktrace.toml").exists():
            time.sleep(0.0005)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        try:
            Home.open(root)
        except Error:
            unfinished += root.exists()
            Home.create(root, title="t", carriers=SHAPES)
        again = Home.open(root)
        assert again.registry.verify().size == 1
        assert again.custody.shapes == SHAPES
        shutil.rmtree(root)
    return {"unfinished": unfinished}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["enrol", url, each]:
            facts = enrol_in_eight(url, int(each))
        case ["enrol", url, each, kept]:
            facts = enrol_in_eight(url, int(each), Path(kept))
        case ["kill", url, times, seed]:
            facts = kill_while_enrolling(url, int(times), int(seed))
        case ["init", folder, times, seed]:
            facts = kill_while_making_a_workspace(Path(folder), int(times), int(seed))
        case _:
            raise SystemExit(2)
    sys.stdout.write(json.dumps(facts))
