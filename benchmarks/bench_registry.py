"""Does a registry of 100,000 entries cost what one of 100 does?

Two workspaces with the same setup: half of their entries are enrolments with credentials of the default set,
half dispatches. Half of the rows are of new processes, half of one that has the registry open.
Every ratio is of medians that were taken in turns in one run. The longer log was looked at once before.
"""

import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from timing import Row, at_most, report
from zktrace.credentials import DEFAULT, PublicKey, SecretKey
from zktrace.credentials.expand import SEED_BYTES
from zktrace.primitives import merkle
from zktrace.registry.enrolling import enrolment
from zktrace.registry.ledger import Ledger
from zktrace.registry.overview import overview
from zktrace.registry.records import DispatchRecord, Entry, Layout, Record, ReleaseRecord
from zktrace.registry.requests import Request
from zktrace.registry.stores.sql import SqlStore
from zktrace.registry.workspace import Home

SMALL, LARGE = 100, 100_000
PLACES = 65_536  # more than are taken: both logs end in the same offer
REPEAT = 7
AT = "2026-01-31T12:00:00Z"


def release(ledger: Ledger) -> Record:
    """The release that all copies are of."""
    layout = Layout(
        carrier="weight",
        profile="informed",
        length=32,
        dimension=64,
        layers=(64,),
        deviations=b"",
        reference=bytes(32),
        probes=bytes(32),
    )
    return ReleaseRecord(name="r1", number=0, root=ledger.root, model=bytes(32), layouts=(layout,))


def filled(folder: Path, size: int) -> Home:
    """A workspace with `size` entries. All but two are written past the registry, which is quicker."""
    made = Home.create(folder, title="benchmark", carriers=("weight",), places=PLACES)
    made.registry.add(release)
    request = Request.make(SecretKey.generate(), made.offer)
    with SqlStore.of_file(folder / "registry.db").transaction() as change:
        for place in range(2, size):
            row = (place - 2) // 2
            name = f"station-{row}"
            record: Record
            if place % 2 == 0:
                record = enrolment(name, row, replace(request, public_key=public_key()), bits=128)
            else:
                record = DispatchRecord(station=name, release="r1", copy=secrets.token_bytes(32))
            change.append(place, Entry(at=AT, record=record).to_bytes())
    return made


def public_key() -> bytes:
    """A key that nobody has the secret of."""
    seed, y = secrets.token_bytes(SEED_BYTES), secrets.token_bytes(DEFAULT.vector_bytes)
    return PublicKey(params=DEFAULT, seed=seed, y=y).to_bytes()


def command(*arguments: object) -> None:
    """One command of `zktrace` in a new process."""
    subprocess.run([sys.executable, "-m", "zktrace", *map(str, arguments)], check=True, capture_output=True)


def asked(place: Home) -> tuple[str, Request]:
    """A station that wants to enrol."""
    return f"new-{secrets.token_hex(8)}", Request.make(SecretKey.generate(), place.offer)


def enrol_command(place: Home) -> Callable[[], None]:
    """`zktrace enrol`; the request is made before."""
    name, request = asked(place)
    path = place.root.parent / f"{name}.request"
    path.write_bytes(request.to_bytes())
    return lambda: command("enrol", name, "--request", path, "--workspace", place.root)


def enrol_call(place: Home) -> Callable[[], object]:
    """The same in this process."""
    name, request = asked(place)
    return lambda: place.enrol(name, request)


def proofs(place: Home) -> None:
    """What the evidence of a case takes from the registry: one state, and entries with their proofs."""
    ledger, head = place.registry.ledger(), place.registry.head()
    leaves = place.registry.leaves(head.size)
    merkle.consistency_proof(leaves, ledger.releases["r1"][0])
    for index in (0, 1, ledger.stations["station-7"].index, head.size // 2, head.size - 1):
        entry = place.registry.entry(index).to_bytes()
        path = merkle.inclusion_proof(leaves, index)
        assert merkle.included(merkle.leaf_hash(entry), index, head.size, path, head.root)


def proofs_command(place: Home) -> None:
    """The same in a new process."""
    subprocess.run([sys.executable, __file__, "proofs", str(place.root)], check=True)


CASES: dict[str, Callable[[Home], Callable[[], object]]] = {
    "zktrace status": lambda place: lambda: command("status", "--workspace", place.root),
    "zktrace enrol": enrol_command,
    "a new process: state and proofs of a trace": lambda place: lambda: proofs_command(place),
    "status": lambda place: lambda: overview(place.registry.ledger()),
    "enrol": enrol_call,
    "state and proofs of a trace": lambda place: lambda: proofs(place),
}


def took(call: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def measured(small: Home, large: Home) -> list[Row]:
    """Medians of both, and their ratio."""
    rows = [Row(name=f"the first look at {LARGE} entries", value=took(large.registry.ledger) / 1e3, unit="s")]
    for name, prepare in CASES.items():
        times: dict[Home, list[float]] = {small: [], large: []}
        for place in (small, large) * REPEAT:
            times[place].append(took(prepare(place)))
        one, other = (statistics.median(each) for each in times.values())
        rows += [
            Row(name=f"{name}, {SMALL} entries", value=one, unit="ms"),
            Row(name=f"{name}, {LARGE} entries", value=other, unit="ms"),
            at_most(f"{name}, ratio", other / one, "x", 3),
        ]
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["proofs"]:
        proofs(Home.open(Path(sys.argv[2])))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            both = (filled(Path(scratch) / str(size), size) for size in (SMALL, LARGE))
            report("registry", measured(*both))
