"""Dispatch: a file for each station, read back, then its record.

A station whose copy lies where it should with the digest on record is passed over, so an interrupted dispatch
is repeated until it is done. A file that stands without a record (the process died between the two) is made
again if its metadata says that it is such a copy; any other file in the way is left alone and refused. The
folder of the copies is locked meanwhile: a second dispatch to it is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from safetensors import SafetensorError, safe_open

from zktrace.codes import unpack
from zktrace.dispatch.copies import CopyPlan, Maker, maker_of
from zktrace.dispatch.standing import CopyCheck
from zktrace.errors import Error, InputError, Refused, WorkerDied
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import claimed, sweep
from zktrace.primitives.processes import workers
from zktrace.readouts.identity import Words
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import DispatchRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One station's copy: where it lies, and whether it was made now or found."""

    station: str
    path: Path
    digest: bytes
    made: bool
    weak: tuple[str, ...] | None = None  # carriers on which it would not be named by itself; None: not read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """A copy that is to be made."""

    station: str
    release: str
    row: int
    path: Path
    words: Mapping[str, Words]  # by carrier


Progress = Callable[[str, float], None]  # station, share of its copy that is done


def dispatch(
    workspace: Home,
    *,
    release: OpenRelease | str | None = None,
    stations: Iterable[str] | None = None,
    out: Path | None = None,
    settings: CopySettings | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    read_back: bool = True,
) -> Iterator[Copy]:
    """Make and record copies, and give each as it is done; None: the latest release, all stations.

    A revoked station that is named is refused before anything is made; among all stations it is left out.
    A copy that would not be named if it leaked is refused too, unless it is made to study such copies: then
    `read_back` is off.
    """
    if jobs < 1:
        raise InputError(f"{jobs} worker processes: at least one is needed")
    opened = release if isinstance(release, OpenRelease) else OpenRelease.of(workspace, release)
    wanted = recipients(opened.ledger, stations)
    plan = CopyPlan.of(opened, settings or CopySettings())
    folder, mode = (out, 0o777) if out is not None else (workspace.copies_folder(opened.name), 0o700)
    with claimed(folder, busy="copies are just being written there; try again when it is done", mode=mode):
        yield from _dispatch(
            workspace,
            opened,
            wanted,
            folder=folder,
            plan=plan,
            jobs=jobs,
            report=progress or _quietly,
            read_back=read_back,
        )


def remake(release: OpenRelease, station: str, path: Path) -> bytes:
    """A copy that is on record, made again from the shared model, to a file; its digest.

    Where copies are computed and not trained, none has to be kept. Refused if the station has no copy of this
    release on record, or if another one comes out: it was made with other settings.
    """
    known = _digests(release, station)
    if not known:
        raise Refused(f"no copy of {release.name} for {station} is on record")
    plan = CopyPlan.of(release, CopySettings())
    if plan.trained:
        raise Refused(f"copies of {release.name} are trained: they are kept, not made again")
    digest = _fulfil(maker_of(plan, release.shared), _order(station, release, path), _quietly)
    if digest not in known:
        path.unlink(missing_ok=True)
        raise Refused(f"{station}'s copy of {release.name} was made with other settings: hand out its file")
    return digest


def kept(release: OpenRelease, station: str, path: Path) -> bytes | None:
    """The digest of a copy that lies at a path and is on record for this station, if it is one."""
    return _found(path, _digests(release, station))


def _quietly(station: str, share: float) -> None:
    """No progress is shown."""


def _dispatch(
    workspace: Home,
    opened: OpenRelease,
    wanted: list[str],
    *,
    folder: Path,
    plan: CopyPlan,
    jobs: int,
    report: Progress,
    read_back: bool,
) -> Iterator[Copy]:
    """The same in a folder that is ours: whatever another process put on record before is known here."""
    ledger = workspace.registry.ledger()
    release = opened.at(ledger)
    places = {name: folder / workspace.copy_path(release.name, name).name for name in wanted}
    known = _recorded(ledger, release.name)
    missing = []
    for name in wanted:
        found = _found(places[name], known.get(name, set()))
        if found is None:
            _check_free(places[name], release.name, name)
            missing.append(name)
            continue
        report(name, 1.0)
        yield Copy(station=name, path=places[name], digest=found, made=False)
    if not missing:
        return
    orders = (_order(name, release, places[name]) for name in missing)
    standing = CopyCheck(release=release)
    for order, digest in _make(plan, release.shared, orders, jobs if len(missing) > 1 else 1, report):
        weak = _read_back(standing, order) if read_back else None
        _put_on_record(workspace, order, digest, known.get(order.station, set()))
        report(order.station, 1.0)
        yield Copy(station=order.station, path=order.path, digest=digest, made=True, weak=weak)


def _read_back(standing: CopyCheck, order: _Order) -> tuple[str, ...]:
    """Carriers on which a copy is weak; Refused, and the copy removed, if nothing would name it."""
    weak = standing.weak(order.path, order.words)
    if len(weak) < len(order.words):
        return tuple(weak)
    order.path.unlink(missing_ok=True)
    reasons = "; ".join(f"{carrier}: {reason}" for carrier, reason in weak.items())
    raise Refused(
        f"{order.station}: its copy would not be named if it leaked, so it is not handed out ({reasons}); "
        "make marks stronger (--share, --episodes, --mark), or release the model on another carrier"
    )


def _order(station: str, release: OpenRelease, path: Path) -> _Order:
    row = release.ledger.station(station).enrolment.row
    codes = {each: release.code(each) for each in release.carriers}
    words = {name: unpack(code.rows([row])[0], code.length) for name, code in codes.items()}
    return _Order(station=station, release=release.name, row=row, path=path, words=words)


def recipients(ledger: Ledger, stations: Iterable[str] | None) -> list[str]:
    """Who gets a copy: the named ones, or everybody enrolled who is not revoked."""
    if stations is None:
        return [name for name in ledger.by_row if ledger.stations[name].revoked is None]
    names = list(dict.fromkeys(stations))
    for name in names:
        if ledger.station(name).revoked is not None:
            raise Refused(f"the station {name} is revoked: it gets no further copies")
    return names


def _recorded(ledger: Ledger, release: str) -> dict[str, set[bytes]]:
    """Digests of the copies of a release that are on record, by station."""
    known: dict[str, set[bytes]] = {}
    for _, each in ledger.dispatched(release=release):
        known.setdefault(each.station, set()).add(each.copy)
    return known


def _digests(release: OpenRelease, station: str) -> set[bytes]:
    """The same of one station."""
    return {each.copy for _, each in release.ledger.dispatched(station=station, release=release.name)}


def _found(path: Path, digests: set[bytes]) -> bytes | None:
    """The digest of a copy that lies there and is on record."""
    if not digests or not path.is_file():
        return None
    try:
        digest = model_digest(open_model(path))
    except Error:
        return None
    return digest if digest in digests else None


def _check_free(path: Path, release: str, station: str) -> None:
    if not path.exists():
        return
    try:
        with safe_open(path, framework="numpy") as handle:
            metadata = handle.metadata() or {}
    except (SafetensorError, OSError):
        metadata = {}
    if metadata != _metadata(release, station):
        raise Refused(f"{path}: is in the way and is no copy of {release} for {station}")


def _metadata(release: str, station: str) -> dict[str, str]:
    """What a copy says of itself: nothing that its recipient does not know."""
    return {"format": "pt", "zktrace.release": release, "zktrace.station": station}


def _make(
    plan: CopyPlan, shared: ModelState, orders: Iterable[_Order], jobs: int, report: Progress
) -> Iterator[tuple[_Order, bytes]]:
    """Copies as files, and their digests, as they are done. Only copies that are trained need processes."""
    if jobs == 1 or not plan.trained:
        maker = None
        for order in orders:
            maker = maker or maker_of(plan, shared)
            yield order, _fulfil(maker, order, report)
        return
    plan.check_portable()
    with workers(jobs) as pool:
        for order, answer in pool.work(partial(_in_worker, _Plan(plan)), orders):
            if isinstance(answer, WorkerDied):
                raise Refused("a worker process died; repeat the command, with fewer --jobs perhaps")
            if isinstance(answer, Exception):
                raise answer
            yield order, answer


def _fulfil(maker: Maker, order: _Order, report: Progress) -> bytes:
    state = maker(order.words, order.row, lambda share: report(order.station, share))
    return _write(order.path, state, _metadata(order.release, order.station))


def _write(path: Path, state: ModelState, metadata: dict[str, str]) -> bytes:
    """Write a copy whole, once; its digest."""
    sweep(path)
    return save_model(path, state, metadata=metadata, secret=True, replace=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan as the key of a worker's one maker."""

    plan: CopyPlan

    def __hash__(self) -> int:
        return hash(self.plan.folder)


@lru_cache(maxsize=1)
def _worker_maker(plan: _Plan) -> Maker:
    return maker_of(plan.plan)


def _in_worker(plan: _Plan, order: _Order) -> bytes:
    return _fulfil(_worker_maker(plan), order, lambda station, share: None)


def _put_on_record(workspace: Home, order: _Order, digest: bytes, known: set[bytes]) -> None:
    """Record a copy, unless this very one is on record; a copy that may not be is removed."""
    if digest in known:
        return
    try:
        workspace.registry.add(DispatchRecord(station=order.station, release=order.release, copy=digest))
    except Refused:
        order.path.unlink(missing_ok=True)
        raise
