"""A guard around the strategies of Flower, in process: copies of their own for nodes, averages of nobody."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed")

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    Krum,
    Strategy,
)

import zktrace
from zktrace.errors import InputError, Refused
from zktrace.federation.flower.inprocess import InProcessGrid
from zktrace.flower import Guarded

NODES, ROUNDS = 4, 3
State = dict[str, np.ndarray]


def first() -> State:
    rng = np.random.default_rng(0)
    return {
        "conv.weight": rng.normal(0, 0.1, (32, 16, 3, 3)).astype(np.float32),
        "fc.weight": rng.normal(0, 0.03, (96, 130)).astype(np.float32),
        "fc.bias": rng.normal(0, 0.1, 96).astype(np.float32),
        "steps": np.array(3),
    }


def record(state: State) -> ArrayRecord:
    return ArrayRecord({name: Array(each) for name, each in state.items()})


def state(arrays: ArrayRecord) -> State:
    return {name: each.numpy() for name, each in arrays.items()}


class Stations:
    """Clients that train as anybody's would: they shrink what they got, add updates, and remember it all."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, State]] = []

    def __call__(self, message: Message, context: Context) -> Message:
        got = state(message.content["arrays"])  # type: ignore[arg-type]
        self.seen.append((context.node_id, message.metadata.message_type, got))
        if message.metadata.message_type == "evaluate":
            return Message(
                RecordDict({"metrics": MetricRecord({"loss": 0.5, "num-examples": 8})}), reply_to=message
            )
        rng = np.random.default_rng([context.node_id, len(self.seen)])
        trained = {
            name: (0.98 * each + 0.3 * each.std() * rng.normal(size=each.shape)).astype(each.dtype)
            if each.dtype.kind == "f"
            else each
            for name, each in got.items()
        }
        metrics = MetricRecord({"loss": 1.0 / len(self.seen), "num-examples": 10 + context.node_id})
        return Message(RecordDict({"arrays": record(trained), "metrics": metrics}), reply_to=message)


def keys() -> tuple[list[bytes], list[str]]:
    """Node keys as a SuperLink keeps them, and as OpenSSH writes them."""
    made = [ec.generate_private_key(ec.SECP384R1()).public_key() for _ in range(NODES)]
    return (
        [each.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for each in made],
        [each.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() for each in made],
    )


@pytest.fixture
def home(tmp_path: Path) -> zktrace.Workspace:
    return zktrace.Workspace.create(tmp_path / "op", title="a federation", budget="1/2")


@pytest.fixture
def named(
    home: zktrace.Workspace,
) -> tuple[zktrace.Workspace, InProcessGrid, Stations, dict[str, str]]:
    """A workspace whose four stations have node keys."""
    registered, lines = keys()
    for number in range(NODES):
        home.enrol(f"station-{number}", zktrace.Credential.new("x").request(home.setup))
    stations = Stations()
    grid = InProcessGrid(stations, [{}] * NODES, keys=registered)
    return home, grid, stations, {f"station-{number}": line for number, line in enumerate(lines)}


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "FedAvg": FedAvg,
    "FedMedian": FedMedian,
    "FedTrimmedAvg": lambda: FedTrimmedAvg(beta=0.3),
    "Krum": lambda: Krum(num_malicious_nodes=1),
    "FedAdam": lambda: FedAdam(eta=0.01),
    "FedProx": lambda: FedProx(proximal_mu=0.1),
    "server-side privacy": lambda: DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), noise_multiplier=0.01, clipping_norm=1.0, num_sampled_clients=NODES
    ),
    "client-side privacy": lambda: DifferentialPrivacyClientSideFixedClipping(
        FedAvg(), noise_multiplier=0.01, clipping_norm=1.0, num_sampled_clients=NODES
    ),
}


def started(strategy: Strategy, grid: InProcessGrid, rounds: int = ROUNDS) -> Any:
    np.random.seed(5)  # Flower's privacy wrappers draw from it,
    random.seed(5)  # and whoever samples nodes from this
    return strategy.start(grid, record(first()), num_rounds=rounds, train_config=ConfigRecord({"lr": 0.1}))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_model_that_leaves_is_traceable_and_the_result_is_nobodys(named: Any, name: str) -> None:
    home, grid, stations, lines = named
    guarded = Guarded(STRATEGIES[name](), workspace=home, nodes=lines, begin=True)
    result = started(guarded, grid)
    assert len(stations.seen) == 2 * NODES * ROUNDS
    for node, kind, got in (stations.seen[1], stations.seen[NODES + 2], stations.seen[-1]):
        owner = f"station-{list(grid.get_node_ids()).index(node)}"
        assert home.trace(got, budget="1/1000000").named == (owner,), kind
    final = state(result.arrays)
    assert np.abs(home.opened().reader("spread").read(final)).max() == 0.0
    records = [each for _, each in home.opened().ledger.broadcasts("federation")]
    assert [each.label for each in records[:3]] == ["train 1", "evaluate 1", "train 2"]
    assert {each.copies for each in records} == {NODES}


@pytest.mark.parametrize("name", STRATEGIES)
def test_without_strength_results_are_those_of_the_strategy_bit_for_bit(named: Any, name: str) -> None:
    home, grid, _, lines = named
    guarded = Guarded(STRATEGIES[name](), workspace=home, nodes=lines, begin=True, strength=0.0)
    found = started(guarded, grid)
    wanted = started(STRATEGIES[name](), InProcessGrid(Stations(), [{}] * NODES))
    one, other = state(found.arrays), state(wanted.arrays)
    assert list(one) == list(other)
    assert all(
        np.array_equal(one[each], other[each]) and one[each].dtype == other[each].dtype for each in one
    )
    for part in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
        assert getattr(found, part) == getattr(wanted, part)


def test_a_node_that_is_nobodys_is_sent_nothing(named: Any, caplog: pytest.LogCaptureFixture) -> None:
    home, grid, stations, lines = named
    del lines["station-2"]
    started(Guarded(FedAvg(), workspace=home.root, nodes=lines, begin=True), grid, 1)
    stranger = list(grid.get_node_ids())[2]
    assert stranger not in {node for node, _, _ in stations.seen}
    assert len(stations.seen) == 2 * (NODES - 1)
    assert "is sent nothing" in caplog.text


def test_nodes_may_be_enrolled_under_their_keys_fingerprint(home: zktrace.Workspace) -> None:
    registered, _ = keys()
    stations = Stations()
    grid = InProcessGrid(stations, [{}] * NODES, keys=[*registered[:-1], registered[0]])  # one has two nodes
    started(Guarded(FedAvg(), workspace=home, enrol=True, begin=True), grid, 1)
    names = list(home.registry.ledger().by_row)
    assert len(names) == NODES - 1
    assert all(name.startswith("node-") for name in names)
    trained = {node: got for node, kind, got in stations.seen if kind == "train"}
    one, *_, same = (trained[node] for node in sorted(trained))
    assert all(np.array_equal(one[name], same[name]) for name in one)
    again = Stations()
    grid = InProcessGrid(again, [{}] * NODES, keys=[*registered[:-1], registered[0]])
    started(Guarded(FedAvg(), workspace=home.root, enrol=True), grid, 1)  # a run that begins anew: same rows
    assert list(home.registry.ledger().by_row) == names
    later = {node: got for node, kind, got in again.seen if kind == "train"}
    for node, got in trained.items():
        assert all(np.array_equal(got[name], later[node][name]) for name in got)


def test_nodes_without_a_key_are_themselves(home: zktrace.Workspace) -> None:
    stations = Stations()
    started(
        Guarded(FedAvg(), workspace=home, enrol=True, begin=True), InProcessGrid(stations, [{}] * NODES), 1
    )
    assert len(home.registry.ledger().by_row) == NODES
    leaked = stations.seen[0][2]
    (found,) = home.trace(leaked, budget="1/1000000").named
    assert found.startswith("node-")


def test_what_is_refused(named: Any) -> None:
    home, grid, _, lines = named
    with pytest.raises(Refused, match="no release federation"):
        started(Guarded(FedAvg(), workspace=home, nodes=lines), grid)
    with pytest.raises(Refused, match="no station of that name"):
        Guarded(FedAvg(), workspace=home, nodes={"stranger": lines["station-0"]})
    with pytest.raises(InputError, match="OpenSSH"):
        Guarded(FedAvg(), workspace=home, nodes={"station-0": "no key"})

    class Silent(FedAvg):
        def configure_train(self, *args: Any, **more: Any) -> list[Message]:
            return [Message(RecordDict(), each, "train") for each in grid.get_node_ids()]

    with pytest.raises(InputError, match="does not carry the shared model"):
        started(Guarded(Silent(), workspace=home, nodes=lines, begin=True), grid)


def test_a_revoked_station_ends_the_round(named: Any) -> None:
    home, grid, _, lines = named
    from zktrace.registry.records import RevocationRecord

    home.registry.add(RevocationRecord(station="station-1", reason="left"))
    with pytest.raises(Refused, match="revoked"):
        started(Guarded(FedAvg(), workspace=home, nodes=lines, begin=True), grid, 1)
