"""An operator's workspace with all that is done in it: enrol, release, dispatch, trace."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from zktrace.carriers import IDENTITY, LEAST, NAMES, Profile, carrier
from zktrace.dispatch.dispatching import Copy, Progress, dispatch
from zktrace.errors import InputError, Refused
from zktrace.front.case import TracedCase
from zktrace.front.given import (
    Budget,
    Model,
    NetworkGiven,
    as_budget,
    as_network,
    as_state,
    check_kind,
)
from zktrace.front.inputs import Inputs, pool_of
from zktrace.front.marked_copy import MarkedCopy
from zktrace.front.suspects import kept_case, read_suspect
from zktrace.guarding import Guard, guard_of
from zktrace.guarding.guard import NAME as GUARDED
from zktrace.marking.settings import CopySettings
from zktrace.primitives.files import read_bounded
from zktrace.readouts.network import Network
from zktrace.readouts.samples import Pool
from zktrace.registry.custody import IDENTITY_BITS, PLACES, CodeShape
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Head
from zktrace.registry.records import InvestigationRecord, SetupRecord
from zktrace.registry.requests import FILE_LIMIT as REQUEST_LIMIT
from zktrace.registry.requests import Request
from zktrace.registry.workspace import DEFAULT_BUDGET, Home
from zktrace.releases import OpenRelease, make_release
from zktrace.tracing import Case, Steps, decided, rebuild, resume, silent, trace

BUDGET = Fraction(1, 1000)  # of an investigation


class Workspace(Home):
    """Everything an operator keeps and does."""

    @classmethod
    def create(
        cls,
        root: str | Path,
        *,
        title: str,
        budget: Budget = DEFAULT_BUDGET,
        carriers: Iterable[str | CodeShape] | None = None,
        url: str | None = None,
        identity_bits: int = IDENTITY_BITS,
        places: int = PLACES,
    ) -> Self:
        """A new workspace in an empty or new folder; `budget` is for all investigations together."""
        return super().create(
            Path(check_kind(root, (str, Path), "a folder")),
            title=title,
            budget=as_budget(budget),
            carriers=tuple(NAMES) if carriers is None else carriers,
            url=url,
            identity_bits=identity_bits,
            places=places,
        )

    @classmethod
    def open(cls, root: str | Path) -> Self:
        """The workspace in a folder, or Refused."""
        return super().open(Path(check_kind(root, (str, Path), "a folder")))

    @property
    def setup(self) -> SetupRecord:
        """The first record: what stations ask for a place of, while its seeds last (else: `offer`)."""
        return self.registry.known().ledger.setup

    @property
    def head(self) -> Head:
        """The head of the log, to be published: a judge needs it from somebody else than the evidence."""
        return self.registry.head()

    def enrol(
        self, station: str, request: Request | str | Path | bytes, *, allow_weak_params: bool = False
    ) -> int:
        """Put a station on record at the next place, and keep its request; the index of its entry."""
        if isinstance(request, str | Path):
            request = read_bounded(Path(request), limit=REQUEST_LIMIT)
        asked = Request.from_bytes(request) if isinstance(request, bytes) else request
        check_kind(asked, Request, "a request")
        return super().enrol(
            check_kind(station, str, "a station"), asked, allow_weak_params=allow_weak_params
        )

    def release(
        self,
        model: Model,
        *,
        carriers: Sequence[str] | None = None,
        profile: Profile = "informed",
        name: str | None = None,
        pool: Pool | None = None,
        length: int | Mapping[str, int] | None = None,
        inputs: Inputs | None = None,
        network: NetworkGiven | None = None,
    ) -> OpenRelease:
        """Put a shared model on record, with how copies of it will be read. The model is not changed.

        Without `carriers` it gets the first that was set up and has the profile; with a `pool` of the
        server's images all of them. `length` is that of the code, or by carrier of several; it follows from
        the model's size unless it is said. `inputs` with labels may stand for a pool, and `network` makes the
        torch module of a model that is none of this package's ResNets (docs/own-network.md).
        """
        if pool is not None:
            check_kind(pool, Pool, "a pool")
        if inputs is not None:
            if pool is not None:
                raise InputError("give a pool or inputs, one of them")
            pool = pool_of(inputs)
        own = as_network(network)
        chosen = self._usual(profile, pool) if carriers is None else tuple(carriers)
        given = Path(model) if isinstance(model, str | Path) else as_state(model)
        lengths = length if isinstance(length, Mapping) else dict.fromkeys(chosen, length)
        told = {each: value for each, value in lengths.items() if value is not None}
        said = {each: check_kind(value, int, "a length") for each, value in told.items()}
        for each, value in said.items():
            if value < LEAST:
                raise InputError(f"the {each} carrier: {value} positions, and a judge asks for {LEAST}")
        made = make_release(
            self, given, carriers=chosen, profile=profile, name=name, pool=pool, lengths=said, network=own
        )
        return OpenRelease.of(self, made.name, ledger=self.registry.known().ledger, network=own)

    def _usual(self, profile: Profile, pool: Pool | None) -> tuple[str, ...]:
        able = tuple(each for each in self.custody.carriers if profile in carrier(each).profiles)
        if not able:
            raise InputError(f"no carrier of this workspace has the profile {profile}")
        return able if pool is not None else able[:1]

    def dispatch(
        self,
        station: str,
        release: OpenRelease | str | None = None,
        *,
        settings: CopySettings | None = None,
    ) -> MarkedCopy:
        """One station's copy, made and put on record, or found if it was before."""
        (copy,) = self.dispatch_all([check_kind(station, str, "a station")], release, settings=settings)
        opened = self.opened(release)
        return MarkedCopy(
            station=copy.station, release=opened.name, path=copy.path, digest=copy.digest, weak=copy.weak
        )

    def dispatch_all(
        self,
        stations: Iterable[str] | None = None,
        release: OpenRelease | str | None = None,
        *,
        out: str | Path | None = None,
        settings: CopySettings | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
    ) -> Iterator[Copy]:
        """A copy for each of several stations, or for everybody, as they are done."""
        return dispatch(
            self,
            release=self.opened(release),
            stations=stations,
            out=None if out is None else Path(out),
            settings=settings,
            jobs=jobs,
            progress=progress,
        )

    def guard(
        self,
        arrays: Mapping[str, NDArray[Any]] | None = None,
        *,
        name: str = GUARDED,
        length: int | None = None,
        strength: float | None = None,
        transport: str | None = None,
        keep: bool = False,
    ) -> Guard:
        """A guard over a federation: every model that leaves is marked, and marks are kept out of averages.

        It is made of the federation's first `arrays`, or found by its name. `strength` is of marks, 0: none.
        `transport` sends real numbers as float16 or bfloat16; with `keep` shared models stay on the disk.
        """
        return guard_of(
            self, arrays, name=name, length=length, strength=strength, transport=transport, keep=keep
        )

    def opened(
        self, release: OpenRelease | str | None = None, *, network: NetworkGiven | None = None
    ) -> OpenRelease:
        """A release under the present log, the latest one unless it is named, with a network of one's own."""
        return self._own(release, self.registry.ledger(), network)

    def _own(
        self, release: OpenRelease | str | None, ledger: Ledger, network: NetworkGiven | None = None
    ) -> OpenRelease:
        """A release of this workspace, however it is given, with the network it was opened with before."""
        own = as_network(network)
        if not isinstance(release, OpenRelease):
            name = None if release is None else check_kind(release, str, "a release")
            return OpenRelease.of(self, name, ledger=ledger, network=own)
        if ledger.release(release.name) != release.record:
            raise Refused(f"the release {release.name} is one of another workspace")
        return release.at(ledger, network=own)

    def trace(
        self,
        suspect: Model | None = None,
        *,
        scores: str | Path | NDArray[Any] | None = None,
        budget: Budget = BUDGET,
        release: OpenRelease | str | None = None,
        carriers: Sequence[str] | None = None,
        align: bool = True,
        certify: bool = True,
        once_after: int | None = None,
        steps: Steps = silent,
    ) -> TracedCase:
        """Whose copy a suspect is: a model, or the scores of one that could only be asked.

        `budget` is the probability of naming an innocent that this may spend of the workspace's. Without
        `certify` nothing is spent and there are leads only; that ends certified looks under this setup for
        ever. The evidence is kept in cases/. `once_after` is for whoever repeats an attempt: Refused, if the
        log has an investigation of this suspect at that place or later (`resume` goes on with it). `steps` is
        told of every look before it is taken, with the share of all that is done.
        """
        level = as_budget(budget)
        if not 0 < level < 1:
            raise InputError(f"a budget must lie between 0 and 1, not be {budget}")
        if not os.access(self.cases_folder(), os.W_OK | os.X_OK):
            raise Refused(f"{self.cases_folder()}: cannot be written to, and evidence is kept there")
        opened = self.leaked(release)
        read = read_suspect(opened, suspect, scores, carriers, align=align, strict=carriers is not None)
        case = trace(
            self.registry,
            self.custody,
            suspect=read.digest,
            release=opened.name,
            readouts=read.reading.readouts,
            further=read.reading.further,
            budget=level * certify,
            level=level,
            requests=self.request_of,
            once_after=once_after,
            steps=steps,
        )
        return kept_case(self, case, read)

    def leaked(
        self,
        release: OpenRelease | str | None = None,
        *,
        ledger: Ledger | None = None,
        network: NetworkGiven | None = None,
    ) -> OpenRelease:
        """The release that is said to have leaked; the only one need not be named."""
        ledger = self.registry.ledger() if ledger is None else ledger
        if release is None and len(ledger.releases) > 1:
            known = ", ".join(ledger.releases)
            raise Refused(f"which release leaked? Name one with --release; known: {known}")
        return self._own(release, ledger, network)

    def rebuild(
        self,
        place: int,
        suspect: Model | None = None,
        *,
        scores: str | Path | NDArray[Any] | None = None,
        level: Budget = BUDGET,
        network: NetworkGiven | None = None,
    ) -> TracedCase:
        """Lost evidence once more, from the verdict on record and the suspect. Nothing is spent."""
        record, _ = decided(self.registry.ledger(), place)
        own, eps = as_network(network), as_budget(level)
        return self._again(rebuild, record, place, suspect=suspect, scores=scores, level=eps, network=own)

    def resume(
        self,
        place: int,
        suspect: Model | None = None,
        *,
        scores: str | Path | NDArray[Any] | None = None,
        level: Budget = BUDGET,
        network: NetworkGiven | None = None,
        steps: Steps = silent,
    ) -> TracedCase:
        """An interrupted investigation carried to its verdict, as planned on record. Nothing is spent."""
        record = self.registry.ledger().investigations.get(place)
        if record is None:
            raise Refused(f"entry {place} is no investigation (zktrace cases lists them)")
        own, eps = as_network(network), as_budget(level)
        call = partial(resume, steps=steps)
        return self._again(call, record, place, suspect=suspect, scores=scores, level=eps, network=own)

    def _again(
        self,
        call: Callable[..., Case],
        record: InvestigationRecord,
        place: int,
        *,
        suspect: Model | None,
        scores: str | Path | NDArray[Any] | None,
        level: Fraction,
        network: Network | None = None,
    ) -> TracedCase:
        """An investigation on record, from its suspect once more."""
        if not 0 < level < 1:
            raise InputError(f"a level must lie between 0 and 1, not be {level}")
        read = read_suspect(
            OpenRelease.of(self, record.release, ledger=self.registry.ledger(), network=network),
            suspect,
            scores,
            tuple(dict.fromkeys(name for look in record.looks for name in look.carriers)),
            align=any(look.alignment != IDENTITY for look in record.looks),
            wanted=record,
        )
        case = call(
            self.registry,
            self.custody,
            place=place,
            suspect=read.digest,
            readouts=read.reading.readouts,
            further=read.reading.further,
            level=level,
            requests=self.request_of,
        )
        return kept_case(self, case, read)
