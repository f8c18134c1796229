"""A release, opened: everything that its copies are made, read and traced with, resolved once.

It holds one snapshot of the ledger, the promised seeds that the code key gives, the folder's files as they
are asked for, and a reader for each carrier. Whoever reads a suspect is handed it and asks no database again.

    weight    channels     permuted and rescaled channels are put back against the shared model
    feature   procrustes   the rotation that brings its features of anchor images to the shared model's
              ridge        the linear map that does, also from another number of features
    output    head         a student without a classifier is given one: the linear map from its features to
                           the shared model's scores

Anchors are images of the release's proxy pool that are no probes. No row and no key enters any of it.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import cached_property
from typing import Any, Self

from numpy.typing import NDArray

from zktrace.carriers import ALIGNMENTS, IDENTITY, Alignment, Profile, carrier
from zktrace.certificates.adjudicate import Rule
from zktrace.codes import Code
from zktrace.errors import InputError, Refused
from zktrace.models import ModelState
from zktrace.readouts.network import Network
from zktrace.readouts.reader import Reader, Terms, reader_of
from zktrace.readouts.readout import Attempt, Reading, Readout
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays
from zktrace.readouts.suspects import layer_names
from zktrace.registry.custody import Custody
from zktrace.registry.ledger import Ledger
from zktrace.registry.readouts import terms_of
from zktrace.registry.records import RULE_OF, Layout, ReleaseRecord
from zktrace.registry.workspace import Home
from zktrace.releases.folder import ReleaseFolder
from zktrace.releases.shared import SharedModel


class OpenRelease:
    """One release of an operator, as one snapshot of the ledger has it."""

    def __init__(
        self,
        record: ReleaseRecord,
        *,
        ledger: Ledger,
        custody: Custody,
        folder: ReleaseFolder,
        network: Network | None = None,
        model: SharedModel | None = None,
    ) -> None:
        self.record = record
        self.ledger = ledger
        self.custody = custody
        self.folder = folder
        self.network = network  # that speaks, if it is none of this package's
        self._model = model or SharedModel(path=folder.shared_path, digest=record.model)
        self._readers: dict[str, Reader] = {}
        self._codes: dict[str, Code] = {}

    @classmethod
    def of(
        cls,
        home: Home,
        name: str | None = None,
        *,
        ledger: Ledger | None = None,
        network: Network | None = None,
    ) -> Self:
        """The release of that name, or the one that was made last; the ledger is read unless it is given."""
        ledger = home.registry.ledger() if ledger is None else ledger
        record = latest(ledger) if name is None else ledger.release(name)
        folder = ReleaseFolder(path=home.release_folder(record.name))
        return cls(record, ledger=ledger, custody=home.custody, folder=folder, network=network)

    def at(self, ledger: Ledger, *, network: Network | None = None) -> "OpenRelease":
        """The same by another snapshot; what was found to be the shared model on record is not read again."""
        return OpenRelease(
            self.record,
            ledger=ledger,
            custody=self.custody,
            folder=self.folder,
            network=network or self.network,
            model=self._model,
        )

    def __repr__(self) -> str:
        return f"<OpenRelease {self.name}: {', '.join(self.carriers)}, {self.profile}>"

    def __reduce__(self) -> str:
        raise InputError("an open release holds the code key: it is not written anywhere")

    @property
    def name(self) -> str:
        """What it is called."""
        return self.record.name

    @property
    def carriers(self) -> tuple[str, ...]:
        """What its copies carry."""
        return tuple(each.carrier for each in self.record.layouts)

    @property
    def profile(self) -> Profile:
        """One for all its carriers."""
        return "paper" if self.record.layouts[0].profile == "paper" else "informed"

    @property
    def guarded(self) -> bool:
        """Whether it stands for a federation under a guard."""
        return any(each.frozen for each in self.record.layouts)

    @property
    def rule(self) -> Rule:
        """How its suspects are decided."""
        return RULE_OF[self.profile]

    @property
    def shared(self) -> ModelState:
        """The shared model, found to be the one on record."""
        return self._model.checked()

    @cached_property
    def pool(self) -> Pool:
        """The server's images."""
        return self.folder.pool()

    def layout(self, name: str) -> Layout:
        """How a carrier is read, or Refused."""
        layout = self.record.layout(name)
        if layout is None:
            raise Refused(f"copies of {self.name} do not carry {name}")
        return layout

    def code(self, name: str) -> Code:
        """The code of a carrier, with the rows of everybody who is enrolled."""
        if name not in self._codes:
            layout = self.layout(name)
            self._codes[name] = self.custody.code(
                name, self.ledger.claims, length=layout.length, law=layout.law
            )
        return self._codes[name]

    def terms(self, name: str) -> Terms:
        """What a reader or a writer of a carrier is made of."""
        layout = self.layout(name)
        return terms_of(
            layout,
            seed=self.custody.direction_seed(name, self.record.number, self.record.root),
            probes=self.folder.probes(layout),
            names=layer_names(self._model.found()) if layout.layers and not carrier(name).beside else None,
            shared=self.shared if carrier(name).beside else None,
            network=self.network,
        )

    def reader(self, name: str) -> Reader:
        """What reads a carrier of suspects."""
        if name not in self._readers:
            self._readers[name] = reader_of(self.terms(name), self.folder.reference(self.layout(name)))
        return self._readers[name]

    def read(
        self,
        suspect: Arrays,
        carriers: Sequence[str] | None = None,
        *,
        align: bool = True,
        strict: bool = False,
    ) -> Reading:
        """Read a model. A carrier that it does not have is left out, unless `strict`."""
        wanted = self.carriers if carriers is None else tuple(carriers)
        if not wanted:
            raise InputError("a suspect is read on one carrier or more")
        readouts: list[Readout] = []
        left: list[tuple[str, str]] = []
        remarks: list[tuple[str, str]] = []
        for name in wanted:
            reader = self.reader(name)
            try:
                values = reader.read(suspect)
            except InputError as error:
                if strict:
                    raise
                left.append((name, str(error)))
            else:
                readouts.append(Readout(carrier=name, values=values, reference=reader.reference))
                remarks += ((name, each) for each in reader.remarks(suspect))
        unread = {name for name, _ in left}
        further = tuple(self._attempts(suspect, wanted, unread)) if align else ()
        self._check_files(further)
        if not readouts and not further:
            raise InputError("; ".join(f"{name}: {reason}" for name, reason in left))
        return Reading(readouts=tuple(readouts), further=further, left=tuple(left), remarks=tuple(remarks))

    def read_answers(self, scores: NDArray[Any]) -> Reading:
        """Read a suspect that was only asked, by its scores of the probes. No network is needed."""
        name = self.asked
        layout = self.layout(name)
        reader = reader_of(
            terms_of(
                layout,
                seed=self.custody.direction_seed(name, self.record.number, self.record.root),
            ),
            self.folder.reference(layout),
        )
        values = reader.read_answers(scores)
        return Reading(readouts=(Readout(carrier=name, values=values, reference=reader.reference),))

    @property
    def asked(self) -> str:
        """The carrier that is read from answers, or Refused."""
        found = next((each for each in self.carriers if carrier(each).answers), None)
        if found is None:
            raise Refused(f"copies of {self.name} carry nothing that answers alone would tell")
        return found

    def _attempts(self, suspect: Arrays, carriers: Sequence[str], unread: Set[str]) -> Iterator[Attempt]:
        """Every alignment of the carriers that are read against the shared model."""
        for how in ALIGNMENTS:
            for name in carriers if how != IDENTITY else ():
                entry = next((each for each in carrier(name).alignments if each.name == how), None)
                if entry is None or self.layout(name).profile != "informed":
                    continue
                able = self._possible(entry, read=name not in unread)
                if able and self.reader(name).disguised(suspect, how):
                    yield Attempt(carrier=name, alignment=how, read=self._aligned(suspect, name, how))

    def _check_files(self, further: Sequence[Attempt]) -> None:
        """What alignments will be fitted on is there and whole, before anything is paid for."""
        ways = [
            how for each in further for how in carrier(each.carrier).alignments if how.name == each.alignment
        ]
        if ways:
            _ = self.shared
        if any(how.images for how in ways):
            _ = self.pool

    def _possible(self, how: Alignment, *, read: bool) -> bool:
        """A suspect that cannot be read as it is has other layers: few alignments map between such.

        One that can has no layers to be given back.
        """
        return (how.like if read else how.unlike) and (not how.images or self.folder.has_pool)

    def _aligned(self, suspect: Arrays, name: str, how: str) -> Callable[[], Readout]:
        def read() -> Readout:
            reader = self.reader(name)
            pool = self.pool if self.folder.has_pool else None
            projected = reader.aligned(suspect, how, shared=self.shared, pool=pool)
            values = reader.readout(projected, reader.reference)
            return Readout(carrier=name, values=values, reference=reader.reference)

        return read


def latest(ledger: Ledger) -> ReleaseRecord:
    """The release that was made last."""
    if not ledger.releases:
        raise Refused("there is no release yet (zktrace release makes one)")
    return max(ledger.releases.values(), key=lambda each: each[0])[1]
