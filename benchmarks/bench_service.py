"""The service at load: PostgreSQL, 10,000 stations, 100,000 entries, and clients on the loopback.

    python benchmarks/bench_service.py                      all but the long run
    python benchmarks/bench_service.py --minutes 10         memory, too

The overview is asked for by 50 clients, each again as soon as it was answered. Enrolments come from four
processes with eight threads each; their requests are verified beforehand, as that takes processors and not
the log: what it takes is a row of its own. The same with proofs goes over HTTP. Copies are made from the
shared model when a station asks.
"""

import argparse
import asyncio
import multiprocessing
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench_registry import AT, public_key
from registry import postgres
from timing import Row, at_least, at_most, report
from zktrace import Workspace
from zktrace.credentials import SecretKey
from zktrace.dispatch.dispatching import dispatch
from zktrace.models import model_digest, open_model
from zktrace.registry.enrolling import enrolment
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import DispatchRecord, EnrolmentRecord, Entry, Record
from zktrace.registry.requests import Request
from zktrace.registry.stores.sql import SqlStore
from zktrace.service.client import Service
from zktrace.service.store import prepared
from zktrace.service.visitors import Accounts, Tokens, Visitor

STATIONS, ENTRIES = 10_000, 100_000
CLIENTS = 50
PROCESSES, THREADS = 4, 8
FETCHED = 1_000
PLACES = 65_536
PASSWORD = "correct horse battery"  # noqa: S105
PORT = 18_443


def arrays(seed: int) -> dict[str, np.ndarray]:
    """A small model: 80,000 weights."""
    rng = np.random.default_rng(seed)
    state = {f"conv{at}.weight": rng.normal(size=(32, 25, 5, 5)).astype(np.float32) for at in range(4)}
    return state | {f"bn{at}.weight": rng.normal(1, 0.1, 64).astype(np.float32) for at in range(8)}


def filled(folder: Path, url: str) -> Workspace:
    """A workspace with stations, releases and copies. Most entries are written past the registry."""
    home = Workspace.create(
        folder / "operator", title="load", budget="1/2", carriers=["spread"], places=PLACES, url=url
    )
    asked = Request.make(SecretKey.generate(), home.offer)
    releases = ENTRIES // STATIONS  # r0 is dispatched later
    with SqlStore(url).transaction() as change:
        for row in range(STATIONS):
            record: Record = enrolment(
                f"station-{row}", row, replace(asked, public_key=public_key()), bits=128
            )
            change.append(row + 1, Entry(at=AT, record=record).to_bytes())
    for number in range(releases):
        home.release(arrays(number), name=f"r{number}")
    with SqlStore(url).transaction() as change:
        for at in range(ENTRIES - STATIONS - releases - 1):
            record = DispatchRecord(
                station=f"station-{at % STATIONS}",
                release=f"r{1 + at // STATIONS}",
                copy=secrets.token_bytes(32),
            )
            change.append(STATIONS + releases + 1 + at, Entry(at=AT, record=record).to_bytes())
    home.registry.ledger()
    return Workspace.open(folder / "operator")


@contextmanager
def serving(home: Workspace, port: int = PORT, workers: int = 2) -> Iterator[tuple[str, int]]:
    """A service in a process of its own: its address and its number."""
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "zktrace", "serve", "--workspace", str(home.root), "--port", str(port)]
    process = subprocess.Popen([*command, "--workers", str(workers), "--rate", "0"])
    try:
        while True:
            try:
                with Service(url=url)._asked("GET", "/healthz", b"", {}) as answer:
                    answer.read()
                break
            except Exception:
                assert process.poll() is None
                time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)


async def asked_again(host: str, port: int, request: bytes, until: float, times: list[float]) -> None:
    """One client: a request over an open connection, and the next when its answer came."""
    reader, writer = await asyncio.open_connection(host, port)
    while time.perf_counter() < until:
        start = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if line)
        await reader.readexactly(int(fields[b"content-length"]))
        assert head.startswith(b"HTTP/1.1 200"), head
        times.append(1e3 * (time.perf_counter() - start))
    writer.close()


def browse(url: str, paths: list[str], token: str, seconds: float, clients: int) -> list[float]:
    """Milliseconds of every answer."""
    parts, times = urlsplit(url), list[float]()
    requests = [
        f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {token}\r\n\r\n".encode()
        for path in paths
    ]

    async def run() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(
            *(
                asked_again(
                    parts.hostname or "", parts.port or 80, requests[at % len(requests)], until, times
                )
                for at in range(clients)
            )
        )

    asyncio.run(run())
    return times


def rate(
    url: str, paths: list[str], token: str, *, seconds: float = 20, clients: int = CLIENTS
) -> list[float]:
    """The same by a process of its own, so that it does not wait for ours."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(browse, (url, paths, token, seconds, clients))


def overview_rows(url: str, token: str) -> list[Row]:
    """How long a person waits for the page that is looked at most, and programs for theirs."""
    rate(url, ["/"], token, seconds=3)
    page, facts = rate(url, ["/"], token), rate(url, ["/api/v1/overview"], token)
    mixed = rate(url, ["/", "/stations?from=5000", "/releases/r3", "/log", "/stations/station-7"], token)
    return [
        at_most(f"overview, {CLIENTS} clients at once, 95 %", p95(page), "ms", 150),
        Row(name="overview, median", value=statistics.median(page), unit="ms"),
        Row(name="overview, answers", value=len(page) / 20, unit="/s"),
        at_most("overview of the API, 95 %", p95(facts), "ms", 150),
        Row(name="five pages in turns, 95 %", value=p95(mixed), unit="ms"),
    ]


def p95(times: list[float]) -> float:
    """The time that 95 of 100 keep."""
    return sorted(times)[int(0.95 * len(times))]


def enrolling(root: Path, number: int, seconds: float, began: "multiprocessing.Queue[int]") -> None:
    """One process of four: records that were verified before, as fast as the log takes them."""
    home = Workspace.open(root)
    home.database.keep_connections()
    registry, asked = home.registry, Request.make(SecretKey.generate(), home.offer)
    registry.ledger()
    until = time.perf_counter() + seconds

    def thread(which: int) -> int:
        done = 0
        while time.perf_counter() < until:
            made = enrolment(
                f"new-{number}-{which}-{done}", 0, replace(asked, public_key=public_key()), bits=128
            )

            def next_place(ledger: Ledger, made: EnrolmentRecord = made) -> Record:
                return replace(made, row=len(ledger.by_row))

            registry.add(next_place)
            done += 1
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        began.put(sum(pool.map(thread, range(THREADS))))


def enrolment_rows(home: Workspace, *, seconds: float = 15) -> list[Row]:
    """How fast four processes fill one log."""
    before = home.registry.ledger().size
    context = multiprocessing.get_context("spawn")
    counts: multiprocessing.Queue[int] = context.Queue()
    crew = [
        context.Process(target=enrolling, args=(home.root, at, seconds, counts)) for at in range(PROCESSES)
    ]
    for each in crew:
        each.start()
    count = sum(counts.get() for _ in crew)
    for each in crew:
        each.join()
    start = time.perf_counter()
    head = home.registry.verify()
    lost = before + count - head.size
    return [
        at_least(f"enrolments on record, {PROCESSES} processes", count / seconds, "/s", 200),
        at_most("of them lost", lost, "entries", 0),
        Row(name=f"the whole log verified, {head.size} entries", value=time.perf_counter() - start, unit="s"),
    ]


def admitting(
    root: Path, number: int, count: int, ready: Barrier, took: "multiprocessing.Queue[float]"
) -> None:
    """One process of four: stations with requests of their own, each proof verified."""
    home = Workspace.open(root)
    home.database.keep_connections()
    made = [Request.make(SecretKey.generate(), home.offer) for _ in range(count)]
    home.registry.ledger()
    ready.wait()
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(lambda at: home.admit(f"asked-{number}-{at}", made[at]), range(count)):
            pass
    took.put(time.perf_counter() - start)


def admitting_rows(home: Workspace, *, each: int = 300) -> list[Row]:
    """The same with proofs: how many stations two cores take in. Their requests are made before."""
    before = home.registry.ledger().size
    context = multiprocessing.get_context("spawn")
    ready, took = context.Barrier(PROCESSES), context.Queue()
    crew = [
        context.Process(target=admitting, args=(home.root, at, each, ready, took)) for at in range(PROCESSES)
    ]
    for one in crew:
        one.start()
    seconds = max(took.get() for _ in crew)
    for one in crew:
        one.join()
    lost = before + PROCESSES * each - home.registry.verify().size
    return [
        Row(name="stations enrolled, every proof verified", value=PROCESSES * each / seconds, unit="/s"),
        at_most("of them lost", lost, "entries", 0),
    ]


def verify_row() -> Row:
    """What a request costs before it gets to the log."""
    asked = Request.make(SecretKey.generate(), bytes(32))
    times = []
    for _ in range(20):
        start = time.process_time()
        asked.verify(bytes(32))
        times.append(1e3 * (time.process_time() - start))
    return Row(name="proof of a request verified", value=statistics.median(times), unit="ms of a processor")


def joined(url: str, offer: bytes, invitations: list[tuple[str, str]]) -> list[str]:
    """Stations that join over HTTP, one after the other; their requests are made before."""
    made = [(name, code, Request.make(SecretKey.generate(), offer)) for name, code in invitations]
    service, names = Service(url=url), []
    for name, code, request in made:
        service.call(
            "POST", "/api/v1/enrolments", {"invitation": code, "request": request.to_bytes().decode()}
        )
        names.append(name)
    return names


def joining_rows(home: Workspace, url: str, operator: str, *, each: int = 40) -> list[Row]:
    """The same over HTTP, with proofs, by eight stations at once."""
    asking = Service(url=url, token=operator)
    codes = [
        (name, str(asking.call("POST", "/api/v1/invitations", {"station": name})["invitation"]))
        for name in (f"joined-{at}" for at in range(8 * each))
    ]
    offer = home.offer
    with ThreadPoolExecutor(8) as pool:
        start = time.perf_counter()
        found = list(pool.map(lambda at: joined(url, offer, codes[at::8]), range(8)))
        took = time.perf_counter() - start
    enrolled = home.registry.ledger().stations
    lost = sum(name not in enrolled for names in found for name in names)
    return [
        Row(
            name="stations that joined over HTTP, proofs made and verified", value=8 * each / took, unit="/s"
        ),
        at_most("of them lost", lost, "stations", 0),
    ]


def fetched(url: str, root: Path, name: str, token: str, digest: str) -> bool:
    """Whether a station got its own copy."""
    path = root / f"{name}.safetensors"
    Service(url=url, token=token).fetch("r0", path)
    right = model_digest(open_model(path)).hex() == digest
    path.unlink()
    return right


def fetching_rows(home: Workspace, url: str, tokens: Tokens) -> list[Row]:
    """A thousand stations fetch what is on record for them; ten at a time."""
    names = [f"station-{at}" for at in range(FETCHED)]
    start = time.perf_counter()
    copies = dispatch(home, release="r0", stations=names, read_back=False)
    made = {each.station: each.digest.hex() for each in copies}
    dispatched = time.perf_counter() - start
    for each in home.copies_folder("r0").iterdir():
        each.unlink()  # made again from the shared model
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(10) as pool:
        start = time.perf_counter()
        right = pool.map(
            lambda name: fetched(
                url,
                Path(folder),
                name,
                tokens.issue("session", Visitor(role="station", name=name)),
                made[name],
            ),
            names,
        )
        wrong = FETCHED - sum(right)
        took = time.perf_counter() - start
    return [
        Row(name=f"{FETCHED} copies made and put on record", value=dispatched, unit="s"),
        Row(name=f"{FETCHED} copies made again and fetched", value=took, unit="s"),
        at_most("of them wrong", wrong, "copies", 0),
    ]


def resident(process: int) -> float:
    """MiB that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def memory_rows(url: str, token: str, process: int, minutes: float) -> list[Row]:
    """Resident memory in the second minute of mixed work, and in the last."""
    paths = ["/", "/stations?from=5000", "/releases/r3", "/log", "/stations/station-7", "/api/v1/overview"]
    found = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        rate(url, paths, token, seconds=15, clients=10)
        found.append(resident(process))
    part = max(len(found) // 10, 1)
    early, late = statistics.median(found[part : 2 * part]), statistics.median(found[-part:])
    return [
        Row(name="memory of the service, early", value=early, unit="MiB"),
        Row(name=f"after {minutes:g} minutes", value=late, unit="MiB"),
        at_most("late to early", late / early, "x", 1.05),
    ]


def main() -> None:
    """All rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.0, help="of work while memory is watched")
    parser.add_argument("--only", nargs="*", default=["overview", "enrolments", "joining", "copies"])
    given = parser.parse_args()
    rows: list[Row] = []
    with postgres.running(durable=True) as server, tempfile.TemporaryDirectory() as scratch:
        start = time.perf_counter()
        home = filled(Path(scratch), server.new_database())
        size = home.registry.ledger().size
        rows.append(Row(name=f"a log of {size} entries made", value=time.perf_counter() - start, unit="s"))
        database = prepared(home)
        Accounts(database).add("an-operator", "operator", PASSWORD)
        tokens = Tokens(database)
        operator = tokens.issue("session", Visitor(role="operator", name="an-operator"))
        if "enrolments" in given.only:
            rows += [*enrolment_rows(home), *admitting_rows(home), verify_row()]
        if not given.minutes and not {"overview", "joining", "copies"} & set(given.only):
            report("service", rows)
            return
        with serving(home) as (url, process):
            if "overview" in given.only:
                rows += overview_rows(url, operator)
            if "joining" in given.only:
                rows += joining_rows(home, url, operator)
            if "copies" in given.only:
                rows += fetching_rows(home, url, tokens)
            if given.minutes:
                rows += memory_rows(url, operator, process, given.minutes)
    report("service", rows)


if __name__ == "__main__":
    main()
