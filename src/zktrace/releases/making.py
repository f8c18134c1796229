"""Making a release: a shared model is put on record, with how copies of it will be read.

Files come first and the record last, so a release on record is whole. Of one that fails nothing is left; one
that was killed is made again. A model that carries rows of earlier copies is refused (`lineage`).
"""

import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from zktrace.carriers import CARRIERS, NAMES, Profile, law_of, needs_training
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError, Refused
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.files import claimed, write_atomic
from zktrace.readouts.network import Network
from zktrace.readouts.reader import reader_of, survey_of
from zktrace.readouts.samples import Pool
from zktrace.registry.ledger import check_name
from zktrace.registry.readouts import terms_of
from zktrace.registry.records import Layout, ReleaseRecord
from zktrace.registry.workspace import Home
from zktrace.releases.folder import ReleaseFolder
from zktrace.releases.lineage import check_unmarked

ZEROS: Final = bytes(32)
_PIECE: Final = 1 << 24  # bytes that are copied at a time
LENGTH_LIMIT: Final = 1 << 13  # positions of a code, as evidence of it may have


def make_release(
    workspace: Home,
    model: Path | ModelState,
    *,
    carriers: tuple[str, ...],
    profile: Profile = "informed",
    name: str | None = None,
    pool: Pool | None = None,
    lengths: Mapping[str, int] | None = None,
    network: Network | None = None,
    frozen: bool = False,
) -> ReleaseRecord:
    """Put a shared model on record, with how copies of it will be read.

    `lengths` are those of the carriers' codes; one that is not said follows from the model's size. If the
    directions are `frozen`, copies are of models that were trained on under a guard.
    """
    ledger = workspace.registry.ledger()
    name = next_name(ledger.releases) if name is None else check_name(name, "release")
    if name in ledger.releases:
        raise Refused(f"a release {name} exists already")
    _check_carriers(carriers, profile, pool)
    _check_lengths(lengths or {}, carriers)
    if frozen and not all(CARRIERS[each].beside for each in carriers):
        raise InputError("a guard keeps training out of all weights: its carrier is read beside the model")
    folder, custody = ReleaseFolder(path=workspace.release_folder(name)), workspace.custody
    with (
        claimed(folder.path, busy="this release is just being made", mode=0o700),
        _whole_or_gone(workspace, folder.path, name),
    ):
        shared = _keep_shared(model, folder.shared_path)
        check_unmarked(workspace, ledger, shared, network)
        if pool is not None:
            folder.save_pool(pool)
        number, root = len(ledger.releases), ledger.root
        layouts = [
            _layout(
                folder,
                shared,
                each,
                profile=profile,
                length=(lengths or {}).get(each),
                seed=custody.direction_seed(each, number, root),
                pool=pool,
                draws=custody.probe_stream(each, number),
                network=network,
                frozen=frozen,
            )
            for each in carriers
        ]
        record = ReleaseRecord(
            name=name, number=number, root=root, model=model_digest(shared), layouts=tuple(layouts)
        )
        workspace.registry.add(record)
    return record


@contextmanager
def _whole_or_gone(workspace: Home, folder: Path, name: str) -> Iterator[None]:
    """Remove the files of a release that failed, unless it came on record after all."""
    try:
        yield
    except BaseException:
        if name not in workspace.registry.ledger().releases:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def next_name(taken: Container[str]) -> str:
    """r1, r2, ...: the first that is free."""
    number = 1
    while f"r{number}" in taken:
        number += 1
    return f"r{number}"


def _check_carriers(carriers: tuple[str, ...], profile: str, pool: Pool | None) -> None:
    if not carriers or len(set(carriers)) != len(carriers) or not set(carriers) <= set(NAMES):
        raise InputError(f"a release has carriers, each once, of {', '.join(NAMES)}")
    for each in carriers:
        if profile not in (able := CARRIERS[each].profiles):
            raise InputError(f"the {each} carrier has the profile {' and '.join(able)} only, not {profile}")
    if needs_training(carriers, profile) and pool is None:
        raise InputError("copies of this kind are trained: name the server's proxy data (--proxy)")


def _check_lengths(lengths: Mapping[str, int], carriers: tuple[str, ...]) -> None:
    for name, length in lengths.items():
        if name not in carriers:
            raise InputError(f"a length of the {name} carrier's code, and copies do not carry it")
        if type(length) is not int or not 1 <= length <= LENGTH_LIMIT:
            raise InputError(f"the {name} carrier: a code has 1..{LENGTH_LIMIT} positions, not {length}")


def _keep_shared(model: Path | ModelState, path: Path) -> ModelState:
    """The shared model as a file of the release: of a safetensors file, its very bytes."""
    state = open_model(model) if isinstance(model, Path) else model
    if isinstance(model, Path) and model.is_file() and _starts_as_safetensors(model):
        write_atomic(path, _pieces(model), secret=True, replace=True)
    else:
        save_model(path, state, secret=True, replace=True)
    return open_model(path)


def _starts_as_safetensors(path: Path) -> bool:
    with path.open("rb") as handle:
        return handle.read(9)[8:] == b"{"


def _pieces(path: Path) -> Iterator[bytes]:
    """A file from front to end."""
    with path.open("rb") as handle:
        while piece := handle.read(_PIECE):
            yield piece


def _layout(
    folder: ReleaseFolder,
    shared: ModelState,
    name: str,
    *,
    profile: Profile,
    length: int | None,
    seed: bytes,
    pool: Pool | None,
    draws: Stream,
    network: Network | None,
    frozen: bool,
) -> Layout:
    """Write a carrier's files and say how it is read."""
    survey = survey_of(name, shared, length=length, pool=pool, draws=draws, network=network)
    probes = None if survey.probes is None else folder.save_probes(name, survey.probes)
    blank = Layout(
        carrier=name,
        profile=profile,
        length=survey.length,
        law=law_of(name, profile),
        dimension=survey.dimension,
        layers=survey.layers,
        deviations=np.array(survey.deviations, dtype=">f4").tobytes(),
        reference=ZEROS,
        probes=ZEROS if probes is None else model_digest(probes),
        frozen=frozen,
    )
    reader = reader_of(terms_of(blank, seed=seed, probes=probes, shared=shared, network=network))
    values = reader.project(shared)  # refused now if nothing can be read of it
    if not blank.referred:
        return blank
    return replace(blank, reference=folder.save_reference(name, values))
