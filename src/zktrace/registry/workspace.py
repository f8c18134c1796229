"""A workspace: the folder of an operator.

zktrace.toml       version, and where the registry's database is
registry.db        the registry, unless it is elsewhere
secrets/code.key   mode 0600 in a folder of mode 0700; everything secret is derived from it
requests/          what stations enrolled with: a judge wants to see that of an accused
releases/NAME/     a shared model and what its copies are read with
copies/            dispatched copies
cases/             the evidence of every investigation
receipts/          what stations signed for copies; there once one did
log/               the last signed checkpoint, and the witnesses; there once the log has a key
cache/             what can be made again; there once the registry has some hundred entries

All folders, this one included, have mode 0700 and all files 0600: a shared model or two copies tell their
reader where rows are.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from zktrace.carriers import NAMES
from zktrace.derivation.key import FILE_LIMIT as KEY_LIMIT
from zktrace.derivation.key import CodeKey, Use
from zktrace.derivation.promises import TREE_LIMIT
from zktrace.errors import MalformedFile, Refused
from zktrace.primitives.commitment import COMMITMENT_BYTES
from zktrace.primitives.files import claimed, read_bounded, sweep, write_atomic
from zktrace.primitives.loading import loaded
from zktrace.primitives.toml import check_keys, parse_toml
from zktrace.registry.custody import IDENTITY_BITS, PLACES, CodeShape, Custody, default_shape
from zktrace.registry.enrolling import enrol, name_request
from zktrace.registry.ledger import Ledger, check_name
from zktrace.registry.records import PLACE, CarrierCode, Record, SeedTree, SetupRecord
from zktrace.registry.registry import Registry
from zktrace.registry.requests import FILE_LIMIT as REQUEST_LIMIT
from zktrace.registry.requests import Request

if TYPE_CHECKING:
    from zktrace.registry.stores.database import Database
    from zktrace.registry.stores.sql import SqlStore

VERSION: Final = 1
SETTINGS: Final = "zktrace.toml"
DEFAULT_BUDGET: Final = Fraction(1, 100)
_UNFINISHED: Final = ".zktrace-init"  # stands in a folder while a workspace is made in it
_SETTINGS_LIMIT: Final = 1 << 16
_KEYS: Final = {"database", "version"}
_LOCAL_DATABASE: Final = "registry.db"
_FOLDERS: Final = ("secrets", "requests", "releases", "copies", "cases")
_LATER: Final = ("cache", "log", "receipts")  # made when something goes there
_DATABASE: Final = "zktrace.registry.stores.database:Database"
_STORE: Final = "zktrace.registry.stores.sql:SqlStore"  # needs a library that judges and stations need not


class Home:
    """Everything an operator keeps, found by its folder. Opening it opens no database yet."""

    def __init__(self, root: Path, *, database: str, new: bool = False) -> None:
        self.root = root
        self._database = database
        self._new = new  # its database may be made

    @classmethod
    def create(
        cls,
        root: Path,
        *,
        title: str,
        budget: Fraction = DEFAULT_BUDGET,
        carriers: Iterable[str | CodeShape] = NAMES,
        url: str | None = None,
        identity_bits: int = IDENTITY_BITS,
        places: int = PLACES,
    ) -> Self:
        """A new workspace in an empty or new folder; its settings are written last.

        A folder in which this was interrupted is no workspace; doing it again finishes it.
        """
        root = Path(root).absolute()
        shapes = tuple(default_shape(each) if isinstance(each, str) else each for each in carriers)
        database = _quoted(url or _LOCAL_DATABASE)
        _rehearse(shapes, title=title, budget=budget, identity_bits=identity_bits, places=places)
        loaded(_STORE)  # a library that is missing is missed before anything is made
        with _new_folder(root):
            workspace = cls(root, database=url or _LOCAL_DATABASE, new=True)
            for folder in _FOLDERS:
                (root / folder).mkdir(mode=0o700, exist_ok=True)
            custody = Custody(key=workspace._make_key(), shapes=shapes)
            setup = custody.setup(title=title, budget=budget, identity_bits=identity_bits, places=places)
            workspace._begin(setup)
            settings = f"version = {VERSION}\ndatabase = {database}\n"
            write_atomic(root / SETTINGS, settings.encode(), secret=True)
        return workspace

    @classmethod
    def open(cls, root: Path) -> Self:
        """The workspace in a folder, or Refused."""
        root = Path(root).absolute()
        path = root / SETTINGS
        if not path.is_file():
            raise Refused(f"{root}: is no workspace (zktrace init makes one)")
        data = read_bounded(path, limit=_SETTINGS_LIMIT)
        settings = parse_toml(data, str(path), reasons=False)  # a reason might repeat a password
        check_keys(str(path), settings, _KEYS)
        if type(settings.get("version")) is not int or settings["version"] != VERSION:
            raise MalformedFile(f"{path}: must say version = {VERSION}")
        if not isinstance(settings.get("database"), str) or not settings["database"]:
            raise MalformedFile(f"{path}: must say where the database is")
        return cls(root, database=settings["database"])

    @classmethod
    def find(cls, start: Path | None = None) -> Self:
        """The workspace of a folder or the nearest one above it; from the current folder by default."""
        begin = Path(start or Path.cwd()).absolute()
        for folder in (begin, *begin.parents):
            if (folder / SETTINGS).is_file():
                return cls.open(folder)
        raise Refused(f"{begin}: no workspace here or above (zktrace init makes one; --workspace names one)")

    def keeps(self, path: Path) -> bool:
        """Whether a file there would be one of the workspace's own.

        New files of others may stand beside the evidence in cases/, and anywhere outside of the folders.
        """
        place = path.parent.resolve() / path.name  # a link is replaced, not what it leads to
        if not place.is_relative_to(self.root.resolve()):
            return False
        folder, *below = place.relative_to(self.root.resolve()).parts or ("",)
        if below:
            return folder in (*_FOLDERS, *_LATER) and (folder != "cases" or os.path.lexists(place))
        return folder in (SETTINGS, self._database) or folder.startswith(f"{self._database}-")

    @property
    def code_key_path(self) -> Path:
        """Where the code key lies."""
        return self.root / "secrets" / "code.key"

    def release_folder(self, name: str) -> Path:
        """Where a release's files lie."""
        return self.root / "releases" / check_name(name, "release")

    def copy_path(self, release: str, station: str) -> Path:
        """Where a station's copy goes unless told otherwise."""
        return self.copies_folder(release) / f"{check_name(station, 'station')}.safetensors"

    def copies_folder(self, release: str) -> Path:
        """Where the copies of a release go unless told otherwise."""
        return self.root / "copies" / check_name(release, "release")

    def cases_folder(self) -> Path:
        """Where evidence is kept, made if it is not there."""
        folder = self.root / "cases"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise Refused(f"{folder}: cannot be made ({(error.strerror or '').lower()})") from error
        return folder

    @cached_property
    def registry(self) -> Registry:
        """The registry; the database is opened now."""
        kind: type[SqlStore] = loaded(_STORE)
        return Registry(kind(self.database, create=self._new), cache=self.root / "cache" / "ledger")

    @cached_property
    def database(self) -> "Database":
        """Where the registry is kept."""
        kind: type[Database] = loaded(_DATABASE)
        return kind(self._database) if "://" in self._database else kind.of_file(self.root / self._database)

    @cached_property
    def custody(self) -> Custody:
        """The code key, checked against the registry's commitment."""
        setup = self.registry.known().ledger.setup
        return Custody.of_setup(self._read_key(), setup)

    @property
    def offer(self) -> bytes:
        """What the next station asks for a place of: the digest of the record that promised its seed."""
        ledger = self.registry.ledger()
        return ledger.offer(PLACE, len(ledger.by_row)).digest

    def enrol(self, station: str, request: Request, *, allow_weak_params: bool = False) -> int:
        """Put a station on record at the next place, and keep its request; the index of its entry."""
        _ = self.custody  # a key that is not the registry's is noticed now
        return self.admit(station, request, allow_weak_params=allow_weak_params)

    def admit(self, station: str, request: Request, *, allow_weak_params: bool = False) -> int:
        """The same without the code key: who listens to strangers does not hold it."""
        return enrol(
            self.registry,
            station=station,
            request=request,
            allow_weak_params=allow_weak_params,
            path=self.request_path(station),
        )

    def reserve(self, kind: str, count: int) -> int:
        """Promise `count` more seeds, in as many entries as it takes; how many are promised in all."""
        for begin in range(0, count, TREE_LIMIT):
            self._reserve(kind, min(TREE_LIMIT, count - begin))
        last = self.registry.ledger().offers[kind][-1].promise
        return last.first + last.count

    def _reserve(self, kind: str, count: int) -> None:
        custody = self.custody

        def further(ledger: Ledger) -> Record:
            last = ledger.offers[kind][-1].promise
            return custody.reservation(kind, last.first + last.count, count)

        self.registry.add(further)

    def request_path(self, station: str) -> Path:
        """Where the request of a station is kept."""
        return self.root / "requests" / f"{check_name(station, 'station')}.json"

    def request_of(self, station: str) -> Request | None:
        """What a station enrolled with, or None if the file was lost."""
        path = self.request_path(station)
        if not path.is_file():
            name_request(self.registry.ledger(), station, path)
        return Request.from_bytes(read_bounded(path, limit=REQUEST_LIMIT)) if path.is_file() else None

    def _make_key(self) -> CodeKey:
        """A new key, or that of an interrupted attempt in this very folder."""
        path, marker = self.code_key_path, self.root / _UNFINISHED
        sweep(path)
        if not path.exists():
            key = CodeKey.generate()
            write_atomic(marker, _mark(key), replace=True)
            write_atomic(path, key.to_bytes(), secret=True)
        key = self._read_key()
        if read_bounded(marker, limit=_SETTINGS_LIMIT) != _mark(key):
            raise Refused(
                f"{path}: a code key lies there that was not made here; a code key belongs to one registry, "
                "or looks in one would be missing from the log of the other"
            )
        return key

    def _read_key(self) -> CodeKey:
        path = self.code_key_path
        data = read_bounded(path, limit=KEY_LIMIT)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise Refused(f"{path}: others can read it (chmod 600 it, and consider who has)")
        return CodeKey.from_bytes(data)

    def _begin(self, setup: SetupRecord) -> None:
        """Put the setup on record, unless an interrupted attempt has."""

        def first(ledger: Ledger) -> Record:
            if ledger.size == 1 and ledger.first == setup:
                raise _DoneAlready
            if ledger.size:
                raise Refused("the database holds another registry already, or an unfinished one")
            return setup

        try:
            self.registry.add(first)
        except _DoneAlready:
            return


def keeper_of(path: Path) -> Path | None:
    """The workspace around a path that keeps it as a file of its own, if there is one."""
    folder = path.parent.resolve()
    for root in (folder, *folder.parents):
        if (root / SETTINGS).is_file():
            return root if Home.open(root).keeps(path) else None
    return None


class _DoneAlready(Exception):
    """The setup is on record."""


def _rehearse(
    shapes: tuple[CodeShape, ...], *, title: str, budget: Fraction, identity_bits: int, places: int
) -> None:
    """Fail for a setup that cannot be put on record before anything is made."""
    zeros = bytes(COMMITMENT_BYTES)
    carriers = tuple(
        CarrierCode(carrier=each.carrier, colluders=each.colluders, biases=zeros) for each in shapes
    )
    setup = SetupRecord(
        title=title,
        code_key=zeros,
        carriers=carriers,
        places=SeedTree(count=places, root=zeros),
        releases=SeedTree(count=1, root=zeros),
        identity_bits=identity_bits,
        budget=budget,
    )
    SetupRecord.from_json(setup.as_json())


def _mark(key: CodeKey) -> bytes:
    """What a folder is marked with while a workspace with this key is made in it. It tells nothing of it."""
    return f"{key.subkey(Use.FINGERPRINT).hex()}\n".encode()


def _quoted(text: str) -> str:
    """A TOML string."""
    if not text.isascii() or not text.isprintable():
        raise Refused("a database's URL is printable ASCII (percent-encode the rest)")
    return json.dumps(text)


@contextmanager
def _new_folder(root: Path) -> Iterator[None]:
    """Sole use of a folder that is empty, new, or was left by an interrupted attempt."""
    marker = root / _UNFINISHED
    with claimed(root, busy="a workspace is just being made there", mode=0o700):
        try:
            if (root / SETTINGS).exists():
                raise Refused(f"{root}: is a workspace already")
            found = {each.name for each in root.iterdir()}
            if found and marker.name not in found:
                raise Refused(f"{root}: is not empty; a workspace gets a folder of its own")
            root.chmod(0o700)  # an empty folder that was there already
            if not found:
                marker.touch(0o600)
        except OSError as error:
            raise Refused(f"{root}: cannot be made a workspace ({(error.strerror or '').lower()})") from error
        yield
        marker.unlink(missing_ok=True)


__all__ = ["DEFAULT_BUDGET", "Home", "keeper_of"]
