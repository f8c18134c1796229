"""What every system keeps, whatever it writes; the toy of CONTRIBUTING among them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from baselines import small, toy
from federation import small as federation
from zktrace.baselines.deepmarks import DeepMarks
from zktrace.baselines.federated import handout, pretrained, spec_with, venue_of
from zktrace.baselines.listing import LISTED, SOURCES, SUPPORT
from zktrace.baselines.protocol import MarkReading, System
from zktrace.baselines.table import SYSTEMS, system_named
from zktrace.baselines.triggers import answers_of
from zktrace.errors import InputError
from zktrace.federation.run import run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.learning.arrays import State
from zktrace.learning.threads import single_threaded
from zktrace.models import model_digest, open_model

ALL = (*SYSTEMS.values(), toy.OneBias)
every_system = pytest.mark.parametrize("kind", ALL, ids=[each.name for each in ALL])


@every_system
def test_each_parameter_says_where_it_comes_from(kind: type[System]) -> None:
    parameters = kind().parameters()
    assert parameters
    for each in parameters:
        assert each.source in SOURCES
        assert each.why
    facts = kind().facts()
    assert facts["system"] == kind.name
    assert set(facts) == {"system"} | {each.name for each in parameters}


@every_system
def test_keys_come_from_the_seed_alone(kind: type[System]) -> None:
    suspect = small.shared()
    first, again, other = (kind.smallest().set_up(small.venue(seed=seed)) for seed in (1, 1, 2))
    assert first.read(suspect) == again.read(suspect)
    assert first.payload().keys() == other.payload().keys()


@every_system
def test_an_unmarked_model_carries_no_mark_and_shows_the_keys_nothing(kind: type[System]) -> None:
    reading = kind.smallest().set_up(small.venue()).read(small.shared())
    assert not reading.present
    assert reading.first is None or 0 <= reading.first < small.STATIONS
    assert (reading.first is None) == (not reading.scores)


@every_system
def test_a_payload_is_counted_in_bytes(kind: type[System]) -> None:
    payload = kind.smallest().set_up(small.venue()).payload()
    assert all(each > 0 for each in payload.values())
    assert set(payload) - {SUPPORT}


@every_system
def test_whoever_names_recipients_gives_each_another_copy_and_nobody_else_does(kind: type[System]) -> None:
    system, venue, shared = kind.smallest(), small.venue(), small.shared()
    scheme = system.set_up(venue)
    with single_threaded():
        copies = [scheme.outgoing(shared, each, venue.rounds) for each in range(2)]
        again = scheme.outgoing(shared, 0, venue.rounds)
    assert alike(copies[0], again)
    assert alike(shared, small.shared()), "a state that was handed in is left alone"
    assert alike(*copies) == (not system.names_recipients)
    assert {name: each.dtype for name, each in copies[0].items()} == {
        name: each.dtype for name, each in shared.items()
    }


def alike(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@every_system
def test_what_queries_read_is_what_the_suspect_answers(kind: type[System]) -> None:
    scheme, suspect = kind.smallest().set_up(small.venue()), small.shared()
    asked = scheme.ask(answers_of(suspect))
    assert asked == scheme.ask(answers_of(suspect))
    if asked is not None:
        silent = scheme.ask(lambda support, labels, images: np.full(len(images), -1))
        assert silent is not None
        assert (silent.mark, silent.present) == (0.0, False)


@every_system
def test_a_federation_runs_with_it(kind: type[System], tmp_path: Path, control: tuple[RunSpec, Path]) -> None:
    base, before = control
    spec = spec_with(base, kind.smallest())
    kept: dict[int, State] = {}
    venue = venue_of(spec, first=lambda: pretrained(before))
    scheme = kind.smallest().set_up(venue)
    (tmp_path / "pretraining.safetensors").write_bytes((before / "pretraining.safetensors").read_bytes())
    with worker_engine(spec, workers=0, handout=handout(scheme, kept=kept, watched=(1, 0))) as engine:
        result = run(spec, tmp_path, engine, resume=True)
    assert result["spec"] == spec.digest() != base.digest()
    assert result["never_trained"] == []
    assert set(kept) == {0}
    shared = dict(open_model(tmp_path / "model.safetensors"))
    assert (digest(tmp_path) == digest(before)) == (kind is DeepMarks), "only this one leaves rounds alone"
    assert scheme.read(shared) == kind.smallest().set_up(venue).read(shared)


def digest(folder: Path) -> bytes:
    return model_digest(open_model(folder / "model.safetensors"))


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSpec, Path]:
    """A federation without marks."""
    folder = tmp_path_factory.mktemp("control")
    preset = federation.preset(lambda_wm=0.0)
    spec = replace(federation.spec(preset), words=())
    with worker_engine(spec, workers=0) as engine:
        run(spec, folder, engine)
    return spec, folder


def test_tables_know_of_each_system_what_it_says_itself() -> None:
    assert list(LISTED) == list(SYSTEMS)
    for name, kind in SYSTEMS.items():
        assert (LISTED[name].place, LISTED[name].names_recipients) == (kind.place, kind.names_recipients)


def test_an_unknown_system_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="fedzkp, fedtracker, duw, fedipr, waffle, deepmarks, zk-trace"):
        system_named("nobody's")


def test_a_scheme_that_lost_its_rounds_is_refused() -> None:
    scheme = system_named("deepmarks").set_up(small.venue())
    with pytest.raises(InputError, match="begins them again"):
        handout(scheme).opening(1, small.shared(), small.shared())


def test_a_reading_is_finite_and_names_only_whom_it_scores() -> None:
    with pytest.raises(InputError, match="not finite"):
        MarkReading(mark=float("nan"))
    with pytest.raises(InputError, match="no score"):
        MarkReading(mark=1.0, scores=(0.5, 0.5), named=(2,))
