"""Flower carries the messages and changes nothing; what a node sends is a stranger's word."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp

from federation import small
from zktrace.errors import InputError, MalformedFile, Refused
from zktrace.federation.client import Absence, Update, client
from zktrace.federation.flower.app import client_app, server_app
from zktrace.federation.flower.engine import Patience, flower_engine
from zktrace.federation.flower.inprocess import InProcessGrid
from zktrace.federation.flower.loopback import make_node_key
from zktrace.federation.flower.records import Packer, unpack
from zktrace.federation.flower.runfile import (
    RunFile,
    node_key,
    parse_run_file,
    preset_toml,
    read_run_file,
    write_run_file,
)
from zktrace.federation.flower.superlink import SuperLink
from zktrace.federation.handout import Handout
from zktrace.federation.run import run
from zktrace.federation.server import conclude
from zktrace.federation.spec import RunSpec, sample_counts
from zktrace.federation.workers import worker_engine
from zktrace.learning.arrays import State
from zktrace.learning.presets import NAMES, load_preset, parse_preset
from zktrace.learning.states import state_of
from zktrace.learning.threads import single_threaded
from zktrace.models import model_digest, open_model

QUICK = Patience(connect=0.3, query=0.3, train=60, poll=0.01)
ASKED = (0, 1, 2)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    return small.spec(cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def configs(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str | int]]:
    """The configurations of three nodes, each with a run file of its own."""
    folder = tmp_path_factory.mktemp("nodes")
    for station in ASKED:
        write_run_file(folder / f"{station}.json", spec)
    return [
        {"station": station, "run-file": str(folder / f"{station}.json"), "cache": str(spec.cache)}
        for station in ASKED
    ]


@pytest.fixture(scope="module")
def shared(spec: RunSpec) -> State:
    return state_of(client(spec, 0)._model)


@pytest.fixture(scope="module")
def expected(spec: RunSpec, shared: State) -> dict[int, Update]:
    """The updates of the first round, without Flower."""
    with worker_engine(spec, workers=0) as engine, single_threaded():
        answers = list(engine.answers(0, ASKED, shared))
    return {answer.station: answer for answer in answers if isinstance(answer, Update)}


def digest(folder: Path) -> str:
    return model_digest(open_model(folder / "model.safetensors")).hex()


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


def test_flower_and_one_process_end_in_the_same_weights(
    spec: RunSpec, configs: list[dict[str, str | int]], tmp_path: Path
) -> None:
    with worker_engine(spec, workers=0) as engine:
        plain = run(spec, tmp_path / "plain", engine)
    grid = InProcessGrid(client_app, configs)
    carried = run(spec, tmp_path / "flower", flower_engine(spec, grid, patience=QUICK))
    assert digest(tmp_path / "plain") == digest(tmp_path / "flower")
    assert plain == carried
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("plain", "flower")]
    assert logs[0] == logs[1]


def server_context(folder: Path, told: object) -> Context:
    """What a ServerApp is started with: the path of the operator's file."""
    (folder / "server.json").write_text(told if isinstance(told, str) else json.dumps(told))
    config = {"server-file": str(folder / "server.json")}
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config)


@pytest.mark.parametrize("told", ["no JSON", "[]", '{"out": []}', '{"out": null}'])
def test_a_file_that_tells_a_server_nothing_is_one_line(tmp_path: Path, told: str) -> None:
    with pytest.raises(MalformedFile, match="not what a server is told"):
        server_app(InProcessGrid(client_app, []), server_context(tmp_path, told))
    bare = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    with pytest.raises(InputError, match="names no server-file"):
        server_app(InProcessGrid(client_app, []), bare)


def test_the_server_app_runs_a_whole_federation_and_says_how_it_ended(
    spec: RunSpec, configs: list[dict[str, str | int]], tmp_path: Path
) -> None:
    told = {
        "run-file": configs[0]["run-file"],
        "cache": str(spec.cache),
        "out": str(tmp_path / "run"),
        "outcome": str(tmp_path / "outcome.json"),
        "connect-timeout": 0.3,
    }
    context = server_context(tmp_path, told)
    server_app(InProcessGrid(client_app, configs), context)
    ended = json.loads((tmp_path / "outcome.json").read_text())
    assert ended["result"] == json.loads((tmp_path / "run" / "result.json").read_text())
    assert ended["result"]["never_trained"] == []
    with pytest.raises(Refused, match="--resume"):
        server_app(InProcessGrid(client_app, configs), context)
    assert "--resume" in json.loads((tmp_path / "outcome.json").read_text())["error"]


def test_nodes_are_stations_by_what_they_say_not_by_their_order(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State, expected: dict[int, Update]
) -> None:
    grid = InProcessGrid(client_app, [configs[2], configs[0], configs[1]])
    answers = list(flower_engine(spec, grid, patience=QUICK).answers(0, ASKED, shared))
    assert sorted(answer.station for answer in answers) == [0, 1, 2]
    for answer in answers:
        assert isinstance(answer, Update)
        assert same(answer.state, expected[answer.station].state)
        assert answer.report == expected[answer.station].report
        assert answer.samples == expected[answer.station].samples


def test_counters_stay_integers(shared: State, expected: dict[int, Update]) -> None:
    counters = [name for name in shared if name.endswith("num_batches_tracked")]
    assert len(counters) == 20
    again = unpack(Packer().pack(expected[0].state))
    assert same(again, expected[0].state)
    assert all(again[name].dtype == np.int64 and again[name].shape == () for name in counters)


def test_large_arrays_are_packed_once_and_come_back_as_they_were() -> None:
    big = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    packer, own = Packer({"big": big}), np.copy(big)
    first = packer.pack({"big": big, "n": np.array(7), "none": np.empty((0, 3), np.float16)})
    second = packer.pack({"big": big, "n": np.array(8), "turned": np.asfortranarray(big)})
    assert first["big"].data is second["big"].data
    assert packer.pack({"big": own})["big"].data is not packer.pack({"big": own})["big"].data  # none is kept
    found = unpack(second)
    assert same(found, {"big": big, "n": np.array(8), "turned": big})
    assert found["turned"].flags.c_contiguous
    assert unpack(first)["none"].shape == (0, 3)


def test_each_station_can_be_handed_a_state_of_its_own(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    def own(station: int, base: State) -> State:
        return base | {"bn1.weight": base["bn1.weight"] + np.float32(station)}

    handout = Handout(outgoing=own, incoming=lambda state: state)
    with worker_engine(spec, workers=0, handout=handout) as engine, single_threaded():
        plain = {answer.station: answer for answer in engine.answers(0, (0, 2), shared)}
    grid = InProcessGrid(client_app, configs)
    for answer in flower_engine(spec, grid, handout=handout, patience=QUICK).answers(0, (0, 2), shared):
        assert isinstance(answer, Update)
        assert same(answer.state, plain[answer.station].state)


def reasons(spec: RunSpec, grid: InProcessGrid, shared: State, **options: object) -> dict[int, str]:
    """Who is absent from the first round, and why; the others trained."""
    answers = flower_engine(spec, grid, **{"patience": QUICK} | options).answers(0, ASKED, shared)
    _, report = conclude(spec, 0, shared, ASKED, answers, counts=sample_counts(spec))
    assert set(report.trained) | set(report.absent) == set(ASKED)
    assert not report.excluded
    return dict(report.absent)


def test_two_nodes_of_one_station_are_none(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    grid = InProcessGrid(client_app, [*configs, configs[1]])
    assert reasons(spec, grid, shared) == {1: "2 nodes say they are this station"}


def test_registered_keys_decide_where_they_are_known(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State, tmp_path: Path
) -> None:
    lines = [make_node_key(tmp_path / str(number)) for number in range(4)]
    keys = [node_key(line) for line in lines]
    stranger = InProcessGrid(client_app, [*configs, configs[1]], keys=keys)
    assert reasons(spec, stranger, shared, nodes=lines[:3]) == {}
    liar = InProcessGrid(client_app, [configs[0], configs[2], configs[2]], keys=keys[:3])
    assert reasons(spec, liar, shared, nodes=lines[:3]) == {1: "its node says it is station 2"}


def test_a_node_that_is_not_ready_says_why(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State, tmp_path: Path
) -> None:
    write_run_file(tmp_path / "other.json", replace(spec, seed=9))
    other = configs[1] | {"run-file": str(tmp_path / "other.json")}
    lost = configs[2] | {"run-file": str(tmp_path / "lost.json")}
    found = reasons(spec, InProcessGrid(client_app, [configs[0], other, lost]), shared)
    assert found[1] == "its node is set up for another preset, seed or roster"
    assert "lost.json" in found[2]


def test_a_missing_station_is_waited_for_once(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    engine = flower_engine(spec, InProcessGrid(client_app, configs[:2]), patience=replace(QUICK, connect=1.5))
    start = time.monotonic()
    first = list(engine.answers(0, (2,), shared))
    between = time.monotonic()
    again = list(engine.answers(1, (2,), shared))
    end = time.monotonic()
    assert [answer.reason for answer in (*first, *again) if isinstance(answer, Absence)] == [
        "no node of this station is connected"
    ] * 2
    assert between - start >= 1.5 > end - between


class Silent(InProcessGrid):
    """Station 1's node takes its training and never answers."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        taken = list(messages)
        names = list(super().push_messages(taken))
        for name, message in zip(names, taken, strict=True):
            if message.metadata.message_type == MessageType.TRAIN and message.metadata.dst_node_id == 1001:
                del self._sent[name]
        return names


def test_a_node_that_never_answers_is_absent_when_time_is_up(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    found = reasons(spec, Silent(client_app, configs), shared, patience=replace(QUICK, train=4))
    assert found == {1: "no answer within 4 s"}


class Refusing(InProcessGrid):
    """The link takes no message for station 1's node."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        taken = list(messages)
        if taken[0].metadata.message_type == MessageType.TRAIN and taken[0].metadata.dst_node_id == 1001:
            return []
        return super().push_messages(taken)


def test_a_message_that_cannot_be_sent_is_reported(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    found = reasons(spec, Refusing(client_app, configs), shared)
    assert found == {1: "the SuperLink did not take the message to its node"}


def lying(forge: Callable[[Message, Message], Message]) -> Callable[[Message, Context], Message]:
    """The real app, except that station 1's update goes through `forge(request, honest reply)`."""

    def answer(message: Message, context: Context) -> Message:
        reply = client_app(message, context)
        if message.metadata.message_type == MessageType.TRAIN and context.node_config["station"] == 1:
            return forge(message, reply)
        return reply

    return answer


def npy(header: str, data: bytes = b"") -> Array:
    text = header.encode().ljust(118) + b"\n"
    return Array(
        "float32", (1,), "numpy.ndarray", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data
    )


def with_state(array: Array, name: str = "conv1.weight") -> Callable[[Message, Message], Message]:
    def forge(request: Message, reply: Message) -> Message:
        content = RecordDict({"state": ArrayRecord({name: array}), "update": reply.content["update"]})
        return Message(content, reply_to=request)

    return forge


def with_update(**changes: object) -> Callable[[Message, Message], Message]:
    def forge(request: Message, reply: Message) -> Message:
        facts = {**reply.content["update"], **changes}
        kept = ConfigRecord({key: value for key, value in facts.items() if value is not None})
        return Message(RecordDict({"state": reply.content["state"], "update": kept}), reply_to=request)

    return forge


def from_another_node(request: Message, reply: Message) -> Message:
    reply.metadata.__dict__["_src_node_id"] = 1000
    return reply


def breaking(request: Message, reply: Message) -> Message:
    raise RuntimeError("out of order")


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda request, _: Message(RecordDict(), reply_to=request), "no record 'update'"),
        (
            lambda request, reply: Message(RecordDict({"update": reply.content["update"]}), reply_to=request),
            "has no state",
        ),
        (with_update(samples=None), "'samples' of the message is not a whole number"),
        (with_update(samples=True), "'samples' of the message is not a whole number"),
        (with_update(loss="low"), "'loss' of the message is not a number"),
        (with_state(Array("float32", (1,), "numpy.ndarray", b"junk")), "cannot be read"),
        (with_state(Array("float32", (1,), "pickle", b"junk")), "cannot be read (not npy)"),
        (with_state(npy(HEADER % ("|O", "(1,)"), bytes(8))), "elements of type object"),
        (with_state(npy(HEADER % ("<f4", "(1099511627776,)"), bytes(4))), "length and shape disagree"),
        (with_state(npy("__import__('os')")), "cannot be read"),
        (with_state(Array(np.zeros(3, np.float32)), "small arrays"), "no block of bytes"),
        (with_state(Array(np.zeros(64, np.uint8)), "small arrays"), "safetensors"),
        (from_another_node, "another node answered in its place"),
        (breaking, "its node failed: RuntimeError: out of order"),
    ],
)
def test_whatever_a_node_sends_is_its_own_loss(
    forge: Callable[[Message, Message], Message],
    reason: str,
    spec: RunSpec,
    configs: list[dict[str, str | int]],
    shared: State,
) -> None:
    found = reasons(spec, InProcessGrid(lying(forge), configs), shared)
    assert list(found) == [1]
    assert reason in found[1]
    assert "\n" not in found[1]


def test_an_update_of_another_round_architecture_or_weight_is_excluded(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    counts = sample_counts(spec)
    for forge, reason in (
        (with_update(round=1), "an update of round 2, not of round 1"),
        (with_state(Array(np.zeros(3, np.float32))), "another architecture"),
        (with_update(samples=1 << 62), f"claims {1 << 62} samples, the roster says {counts[1]}"),
    ):
        engine = flower_engine(spec, InProcessGrid(lying(forge), configs), patience=QUICK)
        _, report = conclude(spec, 0, shared, ASKED, engine.answers(0, ASKED, shared), counts=counts)
        assert report.trained == (0, 2)
        assert reason in report.excluded[1]


def test_a_node_refuses_what_is_not_meant_for_it(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    """A node whose configuration changed after it introduced itself."""
    grid = InProcessGrid(client_app, configs)
    engine = flower_engine(spec, grid, patience=QUICK)
    assert all(isinstance(answer, Update) for answer in engine.answers(0, (1,), shared))
    grid._contexts[1001].node_config = configs[2]
    assert [answer.reason for answer in engine.answers(1, (1,), shared) if isinstance(answer, Absence)] == [
        "asked as station 1, but this node is station 2"
    ]


def test_a_node_without_a_station_is_passed_over(
    spec: RunSpec, configs: list[dict[str, str | int]], shared: State
) -> None:
    nameless = {key: value for key, value in configs[1].items() if key != "station"}
    outside = configs[1] | {"station": 7}
    found = reasons(spec, InProcessGrid(client_app, [configs[0], nameless, outside, configs[2]]), shared)
    assert found == {1: "no node of this station is connected"}


@pytest.mark.parametrize("name", NAMES)
def test_presets_survive_as_text(name: str) -> None:
    preset = load_preset(name)
    assert parse_preset(preset_toml(preset), source="text") == preset


def test_a_run_file_is_read_as_it_was_written(spec: RunSpec, tmp_path: Path) -> None:
    lines = [make_node_key(tmp_path / str(number)) for number in range(3)]
    write_run_file(tmp_path / "run.json", spec, nodes=lines)
    found = read_run_file(tmp_path / "run.json", cache=spec.cache)
    assert found == RunFile(spec=spec, nodes=tuple(lines))
    assert found.spec.digest() == spec.digest()
    with pytest.raises(InputError, match="2 node keys for 3 stations"):
        replace(found, nodes=found.nodes[:2])
    with pytest.raises(InputError, match="same node key"):
        replace(found, nodes=(lines[0], lines[1], lines[0]))


def changed(**values: object) -> Callable[[dict[str, object]], bytes]:
    return lambda content: json.dumps(content | values).encode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: b"\x93 no JSON", "no JSON"),
        (lambda _: b"[" * 100_000, "no JSON"),
        (lambda _: b"[]", "not a run file"),
        (changed(version="zkt-run-v9"), "version zkt-run-v1"),
        (changed(extra=1), "has the keys"),
        (changed(seed=True), "seed a whole number"),
        (changed(seed=-1), "seed a whole number"),
        (changed(preset={}), "preset must be text"),
        (changed(preset="[data]"), "preset: missing key"),
        (changed(words=["zz"] * 3), "not hexadecimal"),
        (changed(words=["00"] * 3), "a codeword of 1 bytes for 16 bits"),
        (changed(words=["0000"]), "1 codewords for 3 stations"),
        (changed(words="0000"), "words must be a list of texts"),
        (changed(nodes=["ssh-rsa x"] * 3), "a node key must be"),
    ],
)
def test_a_bad_run_file_is_refused(
    change: Callable[[dict[str, object]], bytes], words: str, spec: RunSpec
) -> None:
    data = change(json.loads(RunFile(spec=spec).to_bytes()))
    with pytest.raises(InputError, match=words) as caught:
        parse_run_file(data, source="run.json")
    assert isinstance(caught.value, MalformedFile) or "preset" in str(caught.value)
    assert "run.json" in str(caught.value)


def test_an_address_is_host_and_port(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with pytest.raises(InputError, match="host:port"):
        SuperLink(address="127.0.0.1", root_certificates=tmp_path / "ca.crt")
    with pytest.raises(Refused, match="no such file"):
        SuperLink(address="127.0.0.1:1", root_certificates=tmp_path / "none.crt")
    with pytest.raises(InputError, match="positive"):
        Patience(train=0)


def test_importing_the_apps_leaves_flower_quiet() -> None:
    code = (
        "import os\n"
        "for name in [each for each in os.environ if each.startswith('FLWR_')]: del os.environ[name]\n"
        "import zktrace.federation.flower.app\n"
        "from flwr.supercore.telemetry import FLWR_TELEMETRY_ENABLED\n"
        "print(FLWR_TELEMETRY_ENABLED, os.environ['FLWR_DISABLE_UPDATE_CHECK'],"
        " os.environ['FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION'])"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.split() == ["0", "1", "1"]


def test_the_apps_are_what_flower_looks_for() -> None:
    assert isinstance(client_app, ClientApp)
    nodes: Sequence[int] = list(InProcessGrid(client_app, [{}, {}]).get_node_ids())
    assert len(set(nodes)) == 2
