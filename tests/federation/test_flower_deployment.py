"""A real SuperLink with real SuperNodes, TLS and node authentication: the weights of one process.

Minutes; run by name with -m slow. Everything is started and ended here.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")

from dispatch.small import operator
from federation import small
from federation.deployed import gone
from zktrace.errors import Error, InputError
from zktrace.federation.client import Absence, Update
from zktrace.federation.flower.engine import Patience
from zktrace.federation.flower.loopback import (
    Loopback,
    Process,
    free_ports,
    loopback,
    make_node_key,
)
from zktrace.federation.flower.superlink import train_on
from zktrace.federation.guarded import guarded_handout
from zktrace.federation.handout import Engine
from zktrace.federation.run import run
from zktrace.federation.server import RoundReport
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.learning.arrays import State
from zktrace.models import model_digest, open_model
from zktrace.registry.custody import default_shape
from zktrace.registry.workspace import Home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc"),
]

NAMES = ("kiel", "aachen", "munich")
PATIENT = Patience(connect=90, query=90, train=180)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    return replace(small.spec(cache=tmp_path_factory.mktemp("cache")), names=NAMES)


@pytest.fixture(scope="module")
def up(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(spec, tmp_path_factory.mktemp("loopback")) as found:
        yield found
    gone(found.deployment)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return operator(tmp_path / "operator", *NAMES, shapes=(default_shape("spread"),))


def on_record(home: Home) -> list[tuple[str, int]]:
    return [(each.label, each.copies) for _, each in home.registry.ledger().broadcasts("federation")]


def digest(folder: Path) -> str:
    return model_digest(open_model(folder / "model.safetensors")).hex()


def test_a_deployment_ends_in_the_weights_of_one_process(spec: RunSpec, up: Loopback, tmp_path: Path) -> None:
    with worker_engine(spec, workers=0) as engine:
        plain = run(spec, tmp_path / "plain", engine)
    seen: list[object] = []
    carried = train_on(up.superlink, up.found, tmp_path / "flower", patience=PATIENT, progress=seen.append)
    assert carried == plain
    assert digest(tmp_path / "flower") == digest(tmp_path / "plain")
    assert [report.round for report in seen if isinstance(report, RoundReport)] == [0, 1]
    assert [report.trained for report in seen if isinstance(report, RoundReport)] == [(0, 1, 2)] * 2
    with pytest.raises(InputError, match="--resume"):
        train_on(up.superlink, up.found, tmp_path / "flower", patience=PATIENT)


def test_a_node_with_an_unregistered_key_is_turned_away(up: Loopback, tmp_path: Path) -> None:
    make_node_key(tmp_path / "stranger")
    arguments = ["--root-certificates", str(up.superlink.root_certificates)]
    arguments += [
        "--superlink",
        up.superlink.address,
        "--auth-supernode-private-key",
        str(tmp_path / "stranger"),
    ]
    arguments += ["--host", "127.0.0.1", "--port", str(free_ports(1)[0]), "--node-config", "station=0"]
    stranger = Process("flower-supernode", arguments, home=tmp_path, log=tmp_path / "stranger.log")
    try:
        deadline = time.monotonic() + 60
        while stranger.running() and time.monotonic() < deadline:
            time.sleep(0.5)
        with pytest.raises(Error, match="stranger ended with code"):
            stranger.check()
    finally:
        stranger.stop()
    assert not stranger.family()


def test_an_interrupted_wait_stops_a_guarded_run_and_it_can_go_on(
    spec: RunSpec, up: Loopback, home: Home, tmp_path: Path
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "flower"
    with pytest.raises(KeyboardInterrupt):
        train_on(up.superlink, up.found, out, patience=PATIENT, workspace=home.root, progress=interrupt)
    deadline = time.monotonic() + 60
    while any("flwr-serverapp" in each for each in up.deployment.link.family().values()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert not (out / "result.json").exists()
    seen: list[object] = []
    carried = train_on(
        up.superlink,
        up.found,
        out,
        patience=PATIENT,
        workspace=home.root,
        resume=True,
        progress=seen.append,
    )
    assert [report.round for report in seen if isinstance(report, RoundReport)] == [1]
    assert on_record(home) == [("round 1", 3), ("round 2", 3)]
    with worker_engine(spec, workers=0, handout=guarded_handout(home, NAMES)) as engine:
        assert run(spec, tmp_path / "plain", engine) == carried
    assert digest(out) == digest(tmp_path / "plain")
    assert on_record(home) == [("round 1", 3), ("round 2", 3)]


def without(engine: Engine, station: int, number: int) -> Engine:
    """The engine, except that a station is absent from one round."""

    def rest(now: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
        yield from engine.answers(
            now, tuple(each for each in asked if (each, now) != (station, number)), state
        )

    return replace(engine, answers=rest)


def test_a_node_killed_in_mid_round_is_absent_and_the_rest_go_on(
    spec: RunSpec, up: Loopback, home: Home, tmp_path: Path
) -> None:
    """Last: it leaves the deployment without the node of station 1."""
    other = operator(tmp_path / "other", *NAMES, shapes=(default_shape("spread"),))
    with worker_engine(spec, workers=0, handout=guarded_handout(other, NAMES)) as engine:
        run(spec, tmp_path / "plain", without(engine, 1, 1))

    def kill_in_second_round() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            family = up.deployment.nodes[1].family()
            if (tmp_path / "flower" / "log.jsonl").exists() and any(
                "flwr-clientapp" in each for each in family.values()
            ):
                up.deployment.nodes[1].kill()
                killed.append(time.monotonic())
                return
            time.sleep(0.05)

    killed: list[float] = []
    seen: list[object] = []
    killer = Thread(target=kill_in_second_round)
    killer.start()
    train_on(
        up.superlink,
        up.found,
        tmp_path / "flower",
        patience=Patience(connect=90, query=90, train=90),
        workspace=home.root,
        progress=seen.append,
    )
    killer.join()
    assert killed
    first, second = (report for report in seen if isinstance(report, RoundReport))
    assert first.trained == (0, 1, 2)
    assert second.trained == (0, 2)
    assert list(second.absent) == [1]
    assert "its node failed" in second.absent[1] or "no answer within" in second.absent[1]
    assert on_record(home) == [("round 1", 3), ("round 2", 3)]  # what left, whoever answers
    assert digest(tmp_path / "flower") == digest(tmp_path / "plain")
