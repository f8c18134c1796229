"""This package's own rounds under a guard, in one process and on Flower: same weights, one record a round."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import zktrace
from dispatch.small import SHAPES, operator
from federation import small
from zktrace.errors import InputError, Refused
from zktrace.federation import run as run_module
from zktrace.federation.client import Absence, Update
from zktrace.federation.guarded import guarded_handout
from zktrace.federation.handout import SAME_FOR_ALL, Engine, Handout
from zktrace.federation.run import read_marks, run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.guarding import copy_proof, handed_out
from zktrace.learning.arrays import State
from zktrace.models import model_digest, open_model
from zktrace.registry.custody import default_shape
from zktrace.registry.records import RevocationRecord

NAMES = ("kiel", "aachen", "munich")
ROUNDS = [("round 1", 3), ("round 2", 3)]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    return replace(small.spec(cache=tmp_path_factory.mktemp("cache")), names=NAMES)


@pytest.fixture
def home(tmp_path: Path) -> zktrace.Workspace:
    operator(tmp_path / "op", *NAMES, shapes=(default_shape("spread"),))
    return zktrace.Workspace.open(tmp_path / "op")


def trained(spec: RunSpec, folder: Path, handout: Handout, *, workers: int = 0, resume: bool = False) -> Any:
    with worker_engine(spec, workers=workers, handout=handout) as engine:
        return run(spec, folder, engine, resume=resume)


def digest(folder: Path) -> str:
    return model_digest(open_model(folder / "model.safetensors")).hex()


def on_record(home: zktrace.Workspace, name: str = "federation") -> list[tuple[str, int]]:
    return [(each.label, each.copies) for _, each in home.registry.ledger().broadcasts(name)]


def test_flower_worker_processes_and_one_process_end_in_the_same_weights(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")
    from flwr.app import Context, RecordDict

    from zktrace.federation.flower.app import client_app, server_app
    from zktrace.federation.flower.inprocess import InProcessGrid
    from zktrace.federation.flower.runfile import write_run_file

    plain = trained(spec, tmp_path / "plain", guarded_handout(home, NAMES))
    assert on_record(home) == ROUNDS
    assert trained(spec, tmp_path / "apart", guarded_handout(home, NAMES), workers=1) == plain
    write_run_file(tmp_path / "run.json", spec)
    told = {
        "run-file": str(tmp_path / "run.json"),
        "cache": str(spec.cache),
        "workspace": str(home.root),
        "out": str(tmp_path / "flower"),
    }
    (tmp_path / "server.json").write_text(json.dumps(told))
    config = {"server-file": str(tmp_path / "server.json")}
    nodes = [
        {"station": each, "run-file": told["run-file"], "cache": told["cache"]} for each in range(len(NAMES))
    ]
    server_app(
        InProcessGrid(client_app, nodes),
        Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config),
    )
    assert json.loads((tmp_path / "flower" / "result.json").read_text()) == plain
    assert digest(tmp_path / "flower") == digest(tmp_path / "apart") == digest(tmp_path / "plain")
    assert on_record(home) == ROUNDS  # the very copies that are on record already
    assert plain["first"] == home.registry.ledger().release("federation").model.hex()


class Kept:
    """A handout, and everything that it handed out."""

    def __init__(self, handout: Handout) -> None:
        self.sent: list[tuple[int, State]] = []
        self._outgoing = handout.outgoing
        self.handout = replace(handout, outgoing=self.outgoing)

    def outgoing(self, station: int, state: State) -> State:
        made = self._outgoing(station, state)
        self.sent.append((station, made))
        return made


def test_every_broadcast_names_its_station_and_codewords_are_as_without(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    kept = Kept(guarded_handout(home, NAMES))
    guarded = trained(spec, tmp_path / "guarded", kept.handout)
    plain = trained(spec, tmp_path / "plain", SAME_FOR_ALL)
    for station, copy in (kept.sent[1], kept.sent[5]):  # of either round
        assert home.trace(copy, budget="1/1000000", release="federation").named == (NAMES[station],)
    release = home.opened("federation")
    first = dict(release.shared.items())
    for station, copy in kept.sent[:3]:
        assert read_marks(spec, first, copy) == read_marks(spec, first, first)
        for name in (each for each in first if first[each].ndim < 2):
            assert np.array_equal(copy[name], first[name])
        proof = copy_proof(release, 0, NAMES[station])
        assert proof.holds(release.ledger.broadcasts("federation")[0][1])
    assert guarded["marks"]["attribution"] == plain["marks"]["attribution"] == 1.0
    assert guarded["marks"]["predicted"] == plain["marks"]["predicted"]
    final = open_model(tmp_path / "guarded" / "model.safetensors")
    assert np.abs(release.reader("spread").read(final)).max() == 0.0


class Killed(Exception):
    """The end of a process, as far as a test can tell."""


def dying(engine: Engine, number: int) -> Engine:
    """Ends in the middle of a round: copies left, and no answer is waited for."""

    def answers(now: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
        found = list(engine.answers(now, asked, state))
        if now == number:
            raise Killed
        yield from found

    return replace(engine, answers=answers)


@pytest.mark.parametrize("when", ["waiting", "before its checkpoint"])
def test_a_run_that_goes_on_sends_the_same_copies_and_has_each_round_on_record_once(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    kept = Kept(guarded_handout(home, NAMES))
    out = tmp_path / "out"
    with worker_engine(spec, workers=0, handout=kept.handout) as engine, monkeypatch.context() as patch:
        dies = dying(engine, 1) if when == "waiting" else engine
        if when != "waiting":
            save = run_module.save_checkpoint

            def saved(path: Path, checkpoint: Any) -> None:
                if len(checkpoint.facts["log"]) == 2:
                    raise Killed
                save(path, checkpoint)

            patch.setattr(run_module, "save_checkpoint", saved)
        with pytest.raises(Killed):
            run(spec, out, dies)
    assert on_record(home) == ROUNDS  # what left is on record, whatever becomes of the run
    again = Kept(guarded_handout(zktrace.Workspace.open(home.root), NAMES))
    trained(spec, out, again.handout, resume=True)
    assert on_record(home) == ROUNDS
    for (_, one), (_, other) in zip(kept.sent[3:], again.sent, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    trained(spec, tmp_path / "straight", guarded_handout(home, NAMES))
    assert digest(out) == digest(tmp_path / "straight")


def test_a_repeated_round_is_on_record_again_if_somebody_else_receives_a_copy(
    spec: RunSpec, home: zktrace.Workspace
) -> None:
    handout = guarded_handout(home, NAMES)
    shared = {"a.weight": np.random.default_rng(0).normal(size=(96, 130)).astype(np.float32)}
    for stations in ((0, 2), (2,), (0, 1, 2), (0, 1)):
        handout.opening(0, shared, shared)
        for station in stations:
            handout.outgoing(station, shared)
        handout.sent()
    assert on_record(home) == [("round 1", 2), ("round 1", 3)]
    handout.opening(1, shared, shared)  # nobody's update was usable: the same model in another round
    handout.outgoing(1, shared)
    handout.sent()
    assert on_record(home)[2:] == [("round 2", 1)]
    release = home.opened("federation")
    assert [each.station for each in handed_out(release, 2).copies] == ["aachen"]
    (release.folder.path / "broadcasts" / "000002.json").unlink()
    handout.opening(1, shared, shared)
    handout.outgoing(1, shared)
    handout.sent()
    assert on_record(home)[3:] == [("round 2", 1)]  # the list of the first is lost


def test_a_station_revoked_in_mid_run_is_absent_and_the_rest_go_on(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    handout = guarded_handout(home, NAMES)

    def opening(number: int, first: State, state: State) -> None:
        if number == 1:
            home.registry.add(RevocationRecord(station="aachen", reason="left"))
        handout.opening(number, first, state)

    for workers, name in ((0, "here"), (1, "apart")):
        chosen = replace(handout, opening=opening) if workers == 0 else guarded_handout(home, NAMES)
        trained(spec, tmp_path / name, chosen, workers=workers)
        line = json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[-1])
        assert line["trained"] == [0, 2]
        assert "aachen is revoked" in line["absent"]["1"]
    assert on_record(home)[:2] == [("round 1", 3), ("round 2", 2)]


def test_another_run_stands_on_a_release_of_its_own(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    trained(spec, tmp_path / "one", guarded_handout(home, NAMES))
    trained(replace(spec, seed=2), tmp_path / "two", guarded_handout(home, NAMES))
    assert list(home.registry.ledger().releases) == ["federation", "federation-2"]
    assert on_record(home, "federation-2") == ROUNDS
    final = open_model(tmp_path / "two" / "model.safetensors")
    assert np.abs(home.opened("federation-2").reader("spread").read(final)).max() == 0.0


def test_a_run_that_began_without_a_guard_does_not_get_one_later(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    with worker_engine(spec, workers=0) as engine, pytest.raises(Killed):
        run(spec, tmp_path / "run", dying(engine, 1))
    with pytest.raises(Refused, match="--no-guard"):
        trained(spec, tmp_path / "run", guarded_handout(home, NAMES), resume=True)
    assert not home.registry.ledger().releases


def test_what_cannot_be_guarded_is_told_before_anything_is_trained(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path
) -> None:
    narrow = replace(spec, preset=replace(spec.preset, model=replace(spec.preset.model, width=1)))
    with pytest.raises(InputError, match=r"too small to carry a code .* --no-guard"):
        trained(narrow, tmp_path / "run", guarded_handout(home, NAMES))
    other = operator(tmp_path / "other", *NAMES, shapes=SHAPES[:1])
    with pytest.raises(Refused, match=r"needs the spread carrier, .* --no-guard"):
        trained(spec, tmp_path / "run", guarded_handout(other, NAMES))
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="a round is opened"):
        guarded_handout(home, NAMES).outgoing(0, {})


def test_nodes_are_shown_nothing_of_the_workspace(
    spec: RunSpec, home: zktrace.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app goes to every node, and so does the configuration of its run."""
    pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")
    from zktrace.federation.flower.runfile import RunFile
    from zktrace.federation.flower.superlink import FlowerClient, SuperLink, train_on

    seen: list[str] = []

    def start(_: FlowerClient, app: Path) -> int:
        seen.extend(each.read_text() for each in app.rglob("*") if each.is_file())
        told = json.loads((app.parent / "server.json").read_text())
        assert told["workspace"] == str(home.root)
        Path(told["outcome"]).write_text('{"result": {}}')
        return 1

    monkeypatch.setattr(FlowerClient, "start", start)
    (tmp_path / "ca.crt").write_text("not looked at")
    link = SuperLink(address="127.0.0.1:1", root_certificates=tmp_path / "ca.crt")
    train_on(link, RunFile(spec=spec), tmp_path / "run", workspace=home.root)
    assert len(seen) == 1
    assert str(home.root) not in seen[0]
    assert "server-file" in seen[0]
    secrets = [each.read_bytes() for each in (home.root / "secrets").iterdir()]
    assert secrets
    assert not any(each.hex().encode() in RunFile(spec=spec).to_bytes() for each in secrets)
