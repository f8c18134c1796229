"""Reading a suspect on the carriers of a release: as it is, and through alignments that undo a disguise.

    weight    channels     permuted and rescaled channels are put back against the shared model
    feature   procrustes   the rotation that brings its features of anchor images to the shared model's
              ridge        the linear map that does, also from another number of features
    output                 nothing: scores have no coordinates that could be turned

Anchors are images of the release's proxy pool that are no probes. No row and no key enters any of it.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import ALIGNMENTS, IDENTITY
from zktrace.dispatch.releases import (
    ReleaseFolder,
    layout_of,
    reader_of,
    release_folder,
    scores_reader_of,
)
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.readouts.alignment import align_scales
from zktrace.registry.workspace import Workspace
from zktrace.tracing.readout import Attempt, Readout

if TYPE_CHECKING:
    from zktrace.marking.feature import FeatureReader

ANCHORS: Final = 2048  # images at most
_FEWEST: Final = 16  # anchors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What is scored at once, what only if that certifies nobody, and what could not be read, and why."""

    readouts: tuple[Readout, ...]
    further: tuple[Attempt, ...]
    left: tuple[tuple[str, str], ...]  # (carrier, reason)


def read_suspect(
    workspace: Workspace,
    release: str,
    carriers: Sequence[str],
    suspect: ModelState,
    *,
    align: bool = True,
    strict: bool = False,
) -> Reading:
    """Read a model on carriers of a release. A carrier that it does not have is left out, unless `strict`."""
    bench = _Bench(workspace=workspace, release=release, suspect=suspect)
    readouts, left = [], []
    for carrier in carriers:
        reader = reader_of(workspace, release, carrier)
        try:
            values = reader.read(suspect)
        except InputError as error:
            if strict:
                raise
            left.append((carrier, str(error)))
        else:
            readouts.append(Readout(carrier=carrier, values=values, reference=reader.reference))
    unread = {carrier for carrier, _ in left}
    further = tuple(bench.attempts(carriers, unread)) if align else ()
    if not readouts and not further:
        raise InputError("; ".join(f"{carrier}: {reason}" for carrier, reason in left))
    return Reading(readouts=tuple(readouts), further=further, left=tuple(left))


def read_queried(workspace: Workspace, release: str, scores: NDArray[Any]) -> Reading:
    """Read a suspect that was only asked, by its scores of the output carrier's probes."""
    reader = scores_reader_of(workspace, release)
    values = reader.read_scores(scores)
    readout = Readout(carrier="output", values=values, reference=reader.reference)
    return Reading(readouts=(readout,), further=(), left=())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bench:
    """One suspect of one release."""

    workspace: Workspace
    release: str
    suspect: ModelState

    @property
    def folder(self) -> ReleaseFolder:
        return release_folder(self.workspace, self.release)

    def attempts(self, carriers: Sequence[str], unread: Set[str]) -> Iterator[Attempt]:
        """Every alignment of the carriers that are read against the shared model.

        A suspect that cannot be read as it is has other layers: only ridge maps between unlike features.
        """
        for name, able in ALIGNMENTS.items():
            for carrier in carriers if name != IDENTITY else ():
                layout = layout_of(self.workspace, self.release, carrier)
                if carrier not in able or layout.profile != "informed":
                    continue
                if self._possible(carrier) and (carrier not in unread or name == "ridge"):
                    yield Attempt(carrier=carrier, alignment=name, read=self._reading(carrier, name))

    def _possible(self, carrier: str) -> bool:
        return carrier != "feature" or self.folder.has_pool

    def _reading(self, carrier: str, alignment: str) -> Callable[[], Readout]:
        if carrier == "weight":
            return self._channels
        return lambda: self._mapped(alignment)

    def _channels(self) -> Readout:
        reader = reader_of(self.workspace, self.release, "weight")
        aligned = align_scales(self.suspect, self.folder.shared())
        return Readout(carrier="weight", values=reader.read(aligned), reference=reader.reference)

    def _mapped(self, alignment: str) -> Readout:
        from zktrace.marking.alignment import align_features  # noqa: PLC0415

        method = cast(Literal["procrustes", "ridge"], alignment)
        anchors, probes = self._features
        fitted = align_features(anchors[0], anchors[1], method)
        values = self._reader.read_features(fitted.apply(probes))
        return Readout(carrier="feature", values=values, reference=self._reader.reference)

    @cached_property
    def _reader(self) -> "FeatureReader":
        return cast("FeatureReader", reader_of(self.workspace, self.release, "feature"))

    @cached_property
    def _features(self) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
        """Features of the anchors by the suspect and by the shared model, and the suspect's of the probes."""
        reader, images = self._reader, np.asarray(self.folder.pool().images)
        known = {each.tobytes() for each in np.asarray(reader.probes)}
        rest = [at for at, each in enumerate(images) if each.tobytes() not in known]
        if len(rest) < _FEWEST:
            raise InputError(f"{len(rest)} images of the release are no probes: too few to align features on")
        anchors = np.ascontiguousarray(images[rest[:ANCHORS]])
        pair = (reader.features(self.suspect, anchors), reader.features(self.folder.shared(), anchors))
        return pair, reader.features(self.suspect, reader.probes)
