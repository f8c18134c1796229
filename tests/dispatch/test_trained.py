"""Copies that are made by training: both carriers, both profiles, on a narrow network."""

from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dispatch.small import code_of, operator, short_release
from learning.synthetic import narrow, task, taught
from zktrace.codes import sums, symmetric, unpack
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import InputError, MalformedFile, Refused
from zktrace.learning.configs import EpisodeShape, EpisodicConfig
from zktrace.learning.cost import copy_cost
from zktrace.learning.states import state_of
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import gather
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder

NAMES = ("alpha", "beta", "gamma")
FEATURE = {"passes": 12, "batch_size": 32, "beside": 32, "margin": 0.5, "learning_rate": 3e-4}


@cache
def shared() -> ModelState:
    return ModelState.from_arrays({f"module.{name}": value for name, value in taught().items()})


def pool(samples: int = 180) -> Pool:
    images, labels = task(samples, seed=1)
    config = EpisodicConfig(way=5, shot=2, query=3, temperature=8.0, learning_rate=0.01)
    return Pool(images=images, labels=labels, episodes=asdict(config), note="a task")


def place(folder: Path, carriers: tuple[str, ...], profile: str) -> Home:
    made = operator(folder / "op", *NAMES)
    save_model(folder / "model.safetensors", shared())
    short_release(made, folder / "model.safetensors", carriers=carriers, profile=profile, pool=pool())
    return made


def agreement(made: Home, carrier: str, state: ModelState) -> list[float]:
    """How often the signs of a reading are the bits of each station's row."""
    code = code_of(made, carrier)
    word = OpenRelease.of(made, "r1").reader(carrier).read(state) > 0
    rows = unpack(code.rows(range(len(NAMES))), code.length)
    return [float(each) for each in (rows == word).mean(axis=1)]


def test_informed_copies_of_both_carriers(tmp_path: Path) -> None:
    made = place(tmp_path, ("weight", "feature"), "informed")
    settings = CopySettings(marks={"feature": FEATURE})
    copies = list(dispatch(made, stations=NAMES[:2], settings=settings))
    for row, copy in enumerate(copies):
        state = open_model(copy.path)
        assert list(state) == list(shared())
        for carrier, least in (("weight", 1.0), ("feature", 0.9)):
            found = agreement(made, carrier, state)
            assert found[row] >= least
            assert max(found[:row] + found[row + 1 :]) < 0.85
    assert model_digest(ReleaseFolder(path=made.release_folder("r1")).shared()) == model_digest(shared())


def test_the_weight_mark_is_the_same_with_and_without_a_feature_mark(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    made = place(tmp_path / "a", ("weight", "feature"), "informed")
    (copy,) = dispatch(made, stations=["beta"], settings=CopySettings(marks={"feature": FEATURE}))
    values = OpenRelease.of(made, "r1").reader("weight").read(open_model(copy.path))
    assert np.abs(values) == pytest.approx(np.abs(values).mean(), rel=1e-3)


def test_workers_make_the_copies_of_one_process(tmp_path: Path) -> None:
    made = place(tmp_path, ("feature",), "informed")
    settings = CopySettings(marks={"feature": {**FEATURE, "passes": 2}})
    who = NAMES[:2]
    one = {
        copy.station: copy.digest
        for copy in dispatch(made, stations=who, out=tmp_path / "one", settings=settings, read_back=False)
    }
    seen: set[str] = set()
    two = {
        copy.station: copy.digest
        for copy in dispatch(
            made,
            stations=who,
            out=tmp_path / "two",
            settings=settings,
            jobs=2,
            read_back=False,
            progress=lambda station, share: seen.add(station),
        )
    }
    assert one == two
    assert seen == set(who)
    assert len(made.registry.ledger().dispatches) == 2


@pytest.mark.parametrize(
    ("carrier", "rate", "least"), [("weight", 0.05, 0.8), ("feature", 0.005, 0.7)], ids=["weight", "feature"]
)
def test_the_papers_copies_carry_their_rows_by_sign(
    tmp_path: Path, carrier: str, rate: float, least: float
) -> None:
    made = place(tmp_path, (carrier,), "paper")
    settings = CopySettings(episodes=60, learning_rate=rate, push_margin=0.0)
    (copy,) = dispatch(made, stations=["beta"], settings=settings, read_back=False)
    state = open_model(copy.path)
    assert agreement(made, carrier, state)[1] > least
    code = code_of(made, carrier)
    coefficients = symmetric(OpenRelease.of(made, "r1").reader(carrier).read(state) > 0, code.biases)
    assert sums(code.rows(range(3)), coefficients).argmax() == 1
    assert made.registry.ledger().release("r1").layouts[0].reference == bytes(32)


def test_a_push_writes_the_papers_word_at_an_ordinary_learning_rate(tmp_path: Path) -> None:
    made = place(tmp_path, ("weight",), "paper")
    pushed, plain = (
        next(dispatch(made, stations=["beta"], out=tmp_path / str(margin), settings=s, read_back=False))
        for margin in (0.1, 0.0)
        for s in [CopySettings(episodes=5, learning_rate=0.001, push_margin=margin)]
    )
    strong, weak = (agreement(made, "weight", open_model(each.path))[1] for each in (pushed, plain))
    assert strong > 0.9
    assert weak < 0.8


def test_the_paper_can_write_both_carriers_at_once(tmp_path: Path) -> None:
    made = place(tmp_path, ("weight", "feature"), "paper")
    (copy,) = dispatch(made, stations=["beta"], settings=CopySettings(episodes=2), read_back=False)
    state = open_model(copy.path)
    assert gather(state).tolist() != gather(shared()).tolist()
    assert list(state) == list(shared())


def test_the_cost_is_measured_on_the_same_episodes() -> None:
    images, labels = task(90, seed=2)
    shape = EpisodeShape(way=5, shot=2, query=3)
    random = ModelState.from_arrays(state_of(narrow(seed=5)))
    copies = [("same", shared()), ("untrained", random)]
    cost = copy_cost(shared(), copies, images, labels, shape=shape, episodes=40)
    assert cost.copies["same"] == cost.shared
    lost = 100 * (cost.shared.mean - cost.copies["untrained"].mean)
    assert lost != 0
    assert cost.mean == pytest.approx(lost / 2)
    assert cost.worst == pytest.approx(max(lost, 0))
    with pytest.raises(InputError, match="no copy"):
        copy_cost(shared(), [], images, labels, shape=shape, episodes=2)


def test_what_a_release_cannot_be_trained_with_is_refused(tmp_path: Path) -> None:
    made = operator(tmp_path / "op", *NAMES)
    save_model(tmp_path / "model.safetensors", shared())
    with pytest.raises(InputError, match="64 probes are needed, the proxy data has 40 images"):
        short_release(made, tmp_path / "model.safetensors", carriers=("feature",), pool=pool(40))
    short_release(made, tmp_path / "model.safetensors", carriers=("feature",), pool=pool())
    folder = ReleaseFolder(path=made.release_folder("r1"))
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}
    assert {path.name for path in folder.path.iterdir()} > {"probes.safetensors", "proxy.safetensors"}
    with pytest.raises(InputError, match="no such setting"):
        list(dispatch(made, settings=CopySettings(marks={"feature": {"margins": 1.0}})))
    with pytest.raises(InputError, match="passes of a mark is a whole number"):
        list(dispatch(made, settings=CopySettings(marks={"output": {"passes": 1.5}})))
    facts = folder.path / "proxy.json"
    good = facts.read_text()
    facts.write_text("{}")
    with pytest.raises(MalformedFile, match="proxy pool"):
        list(dispatch(made))
    facts.unlink()
    with pytest.raises(Refused, match="without proxy data"):
        list(dispatch(made))
    facts.write_text(good)
    folder.save_probes("feature", {"probes": np.zeros((64, 4, 32, 32), np.float32)})
    with pytest.raises(MalformedFile, match="not the probes"):
        list(dispatch(made))
    with pytest.raises(MalformedFile, match="not the probes"):
        OpenRelease.of(made, "r1").reader("feature")


def test_probes_are_not_kept_where_they_are() -> None:
    images, labels = task(30)
    pool = Pool(images=images, labels=labels, episodes={}, note="")
    assert np.flatnonzero(pool.others(images[5:15])).tolist() == [*range(5), *range(15, 30)]


@pytest.mark.parametrize(
    "bad",
    [
        {"share": 0.0},
        {"share": 2.0},
        {"episodes": 0},
        {"mu": -1.0},
        {"lambda_t": float("inf")},
        {"push_margin": -0.1},
    ],
)
def test_impossible_settings_are_errors(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        CopySettings(**bad)  # type: ignore[arg-type]
