"""ZK-Trace behind the face of the published systems: rows in every round, certificates, nobody framed."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from baselines import small
from zktrace.attacks.collusion import collude
from zktrace.attacks.rewrite import permute, rescale
from zktrace.baselines.ours import GuardedRows, ZKTrace
from zktrace.learning.arrays import State

WIDTH = 16


def scheme(seed: int = 1, stations: int = 8) -> GuardedRows:
    return ZKTrace(positions=512).set_up(small.venue(seed=seed, stations=stations, width=WIDTH))


def moved(state: State, size: float, seed: int = 3) -> State:
    """As training or noise would leave it: by a part of each matrix's deviation."""
    rng = np.random.default_rng(seed)
    return {
        name: (array + size * array.std() * rng.standard_normal(array.shape)).astype(array.dtype)
        if array.ndim > 1
        else array
        for name, array in state.items()
    }


def test_each_station_is_named_by_its_copy_of_every_round_and_strangers_are_not() -> None:
    made, stranger, shared = scheme(), scheme(seed=2), small.shared(WIDTH)
    for number in range(2):
        for station in (0, 5):
            copy = moved(made.outgoing(shared, station, number), 0.02)
            reading = made.read(copy)
            assert (reading.named, reading.first) == ((station,), station)
            assert reading.mark > 0.95
            assert stranger.read(copy).named == ()
        shared = made.incoming(moved(shared, 0.05, seed=number), shared)


def test_an_aggregate_of_copies_names_nobody() -> None:
    made, shared = scheme(), small.shared(WIDTH)
    copies = [made.outgoing(shared, each, 0) for each in range(8)]
    mean = {name: np.mean([each[name] for each in copies], axis=0, dtype=np.float64) for name in shared}
    aggregate = {name: array.astype(shared[name].dtype) for name, array in mean.items()}
    assert len(made.read(aggregate).named) == 8
    cleaned = made.incoming(aggregate, shared)
    assert made.read(cleaned).named == ()
    assert max(map(abs, made.read(cleaned).scores)) < 4.0


def test_colluders_are_named_and_nobody_else() -> None:
    made, shared = scheme(), small.shared(WIDTH)
    members = (1, 4, 6)
    held = [made.outgoing(shared, each, 2) for each in members]
    for strategy in ("mean", "median", "farthest"):
        suspect = dict(collude(held, strategy, rng=np.random.default_rng(0)))
        assert made.read(suspect).named == members, strategy


def test_a_copy_that_was_rewritten_is_put_back() -> None:
    made, rng = scheme(), np.random.default_rng(4)
    copy = made.outgoing(small.shared(WIDTH), 3, 2)
    suspect = permute(rescale(copy, rng, norms=True), rng, features=True)
    assert made.read(suspect).named == (3,)


def test_what_is_no_such_model_names_nobody() -> None:
    reading = scheme().read({"something": np.zeros(5, np.float32)})
    assert (reading.named, reading.mark) == ((), 0.0)


def test_a_station_proves_its_credential_over_a_model_and_nobody_borrows_it() -> None:
    made, shared = scheme(), small.shared(WIDTH)
    proof = made.proved(made.outgoing(shared, 0, 2), shared)
    assert (proof.accepted, proof.borrowed, proof.replayed) == (True, False, False)
    payload = made.payload()
    assert payload["row"] == 512 // 8
    assert payload["seeds"] == 64
    assert payload["first model"] == sum(each.nbytes for each in shared.values())
