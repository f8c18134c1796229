"""Words are written into the features of probes and read back."""

import inspect
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from learning.synthetic import narrow, same, task, taught
from readouts.making import feature_reader
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.errors import InputError
from zktrace.learning.aggregation import fedavg
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.states import state_of
from zktrace.marking.feature import FeatureConfig, FeatureHinge, FeatureWriter
from zktrace.marking.weight import WeightWriter
from zktrace.models import ModelState
from zktrace.readouts.directions import Directions
from zktrace.readouts.features import FeatureReader
from zktrace.readouts.reader import Terms
from zktrace.readouts.scales import gather, layer_sizes

PROBES = 96
SEED = b"f" * 32
CODE = Code(key=CodeKey(secret=b"k" * 32), label="feature", length=PROBES, colluders=2)


def shared() -> dict[str, np.ndarray]:
    return taught(width=8)


@cache
def images() -> np.ndarray:
    return task(PROBES + 120, seed=1)[0]


def reader(profile: Any = "informed", reference: Any = None) -> FeatureReader:
    return feature_reader(
        seed=SEED, probes=images()[:PROBES], dimension=64, profile=profile, reference=reference
    )


def informed() -> FeatureReader:
    return reader(reference=reader().project(shared()))


@cache
def writer() -> FeatureWriter:
    config = FeatureConfig(passes=12, batch_size=32, beside=32, margin=0.5, learning_rate=3e-4)
    return FeatureWriter(
        shared(), seed=SEED, probes=images()[:PROBES], beside=images()[PROBES:], config=config
    )


@cache
def copy(row: int) -> dict[str, np.ndarray]:
    word = unpack(CODE.rows([row])[0], PROBES)
    return writer().write(word, rng=np.random.default_rng(row))


def small() -> FeatureWriter:
    """A few steps, the last of a pass with fewer probes."""
    config = FeatureConfig(passes=3, batch_size=40, beside=32, margin=0.5, learning_rate=3e-4)
    return FeatureWriter(
        shared(), seed=SEED, probes=images()[:PROBES], beside=images()[PROBES:], config=config
    )


def named(state: Any) -> set[int]:
    rows = CODE.rows(range(6))
    evidence = Source(
        carrier="feature",
        values=informed().read(state),
        biases=CODE.biases,
        sums=lambda coefficients: sums(rows, coefficients),
        rows=CODE.rows,
    )
    return {each.recipient for each in investigate([evidence], level=Fraction(1, 1000)).named}


def test_a_seed_has_the_outcome_it_always_had() -> None:
    """Numbers of the loop that `learning.loop` replaced; what is drawn is the same to the last bit."""
    rng, word, shares = np.random.default_rng(7), unpack(CODE.rows([0])[0], PROBES), []
    values = informed().read(small().write(word, rng=rng, progress=shares.append))
    assert (values * (2.0 * word - 1)).mean() == pytest.approx(0.4142734, rel=1e-2)
    assert rng.integers(1 << 60) == 406464715282823451
    assert shares == [step / 9 for step in range(1, 10)]


def test_a_reader_is_made_without_a_key_to_the_rows() -> None:
    assert set(inspect.signature(FeatureReader).parameters) == {"terms", "reference"}
    taken = set(inspect.signature(Terms).parameters)
    given = {"carrier", "seed", "length", "profile", "dimension", "layers", "deviations", "probes", "names"}
    assert taken == {*given, "shared", "network", "frozen"}


def test_the_reading_is_the_formula() -> None:
    features = embed(backbone_of(shared()), images()[:PROBES]).astype(float)
    directions = Directions(label="feature", seed=SEED, dimension=64, count=PROBES).block(0, PROBES)
    expected = [v @ f for v, f in zip(directions, features, strict=True)]
    assert reader("paper").read(shared()) == pytest.approx(expected, rel=1e-6)
    assert informed().read(shared()) == pytest.approx(np.zeros(PROBES))


def test_a_copy_carries_its_word_and_keeps_everything_but_the_last_convolutions() -> None:
    word = unpack(CODE.rows([0])[0], PROBES)
    values = informed().read(copy(0))
    assert ((values > 0) == word).mean() > 0.95
    changed = {name for name, value in shared().items() if not np.array_equal(value, copy(0)[name])}
    assert changed
    assert all(name.startswith("layer4.") and ".bn" not in name for name in changed)
    assert not any(name.startswith("layer4.0.downsample.1") for name in changed)


def test_copies_are_traced_alone_and_averaged() -> None:
    for row in range(3):
        assert named(copy(row)) == {row}
    assert named(fedavg([copy(0), copy(1)], [1.0, 1.0])) == {0, 1}


def test_writing_is_repeatable() -> None:
    word = unpack(CODE.rows([1])[0], PROBES)
    assert same(writer().write(word, rng=np.random.default_rng(1)), copy(1))


def test_a_word_in_the_scales_stays_beside_one_in_the_features() -> None:
    state = ModelState.from_arrays(shared())
    scales = WeightWriter(seed=SEED, length=64, layers=layer_sizes(state))
    start = scales.write(state, np.arange(64, dtype=np.uint8) % 2).state
    word = unpack(CODE.rows([2])[0], PROBES)
    seen: list[float] = []
    both = writer().write(word, rng=np.random.default_rng(2), start=start, progress=seen.append)
    assert gather(both).tolist() == gather(start).tolist()
    assert named(both) == {2}
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_suspects_under_other_names_and_with_heads_are_read() -> None:
    suspect = {f"module.{name}": value for name, value in copy(0).items()}
    suspect["module.fc.weight"] = np.ones((3, 64), np.float32)
    suspect["other"] = np.array([np.nan])
    assert informed().read(suspect).tolist() == informed().read(copy(0)).tolist()
    halves = {k: v.astype(np.float16) if v.dtype == np.float32 else v for k, v in copy(0).items()}
    assert informed().read(halves) == pytest.approx(informed().read(copy(0)), abs=0.1)


def test_the_papers_hinge_is_the_formula_with_fixed_statistics() -> None:
    word = unpack(CODE.rows([0])[0], PROBES)
    directions = Directions(label="feature", seed=SEED, dimension=64, count=PROBES).block(0, PROBES)
    hinge = FeatureHinge(directions, images()[:PROBES], word, margin=1.0, batch_size=PROBES, seed=1)
    model = backbone_of(shared()).train()
    before = state_of(model)
    value = hinge(model)
    expected = np.maximum(0, 1 - (2.0 * word - 1) * reader("paper").read(shared())).mean()
    assert value.item() == pytest.approx(expected, rel=1e-5)
    assert same(before, state_of(model))
    assert model.training
    value.backward()
    assert model.layer4[1].conv2.weight.grad.abs().sum() > 0
    part = FeatureHinge(directions, images()[:PROBES], word, margin=1.0, batch_size=8, seed=1)
    assert part(model).item() != part(model).item()


def _changed(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in ({**shared(), **changes}).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"conv1.weight": None}, "no first convolution"),
        ({"conv1.weight": np.ones((8, 4, 3, 3), np.float32)}, "no first convolution"),
        ({"conv1.weight": np.ones((8, 3, 7, 7), np.float32)}, "3 channels, the probes have 4"),
        ({"conv1.weight": np.ones((16, 4, 7, 7), np.float32)}, "layer1.0.conv1.weight"),
        ({"layer3.1.conv1.weight": None}, "blocks in its stages"),
        ({"conv1.weight": np.ones((1 << 20, 1, 7, 7), np.int8)}, "layer1.0.conv1.weight"),
        ({"layer4.1.conv2.weight": None}, "lacks 'layer4.1.conv2.weight'"),
        ({"layer4.1.conv2.weight": np.full((64, 64, 3, 3), np.nan)}, "not finite"),
        ({"layer4.1.conv2.weight": np.ones((64, 64), np.float32)}, "has shape"),
    ],
)
def test_suspects_of_another_kind_are_refused_with_a_reason(changes: dict[str, Any], words: str) -> None:
    suspect = _changed(**changes)
    with pytest.raises(InputError, match=words):
        informed().read(suspect)


def test_a_suspect_of_another_width_is_refused() -> None:
    mine = feature_reader(seed=SEED, probes=images()[:PROBES], profile="paper", dimension=64)
    assert mine.read(shared()).tolist() == reader("paper").read(shared()).tolist()
    with pytest.raises(
        InputError, match=r"features of shape \(\d+, 32\), the release's are of shape \(\d+, 64\)"
    ):
        mine.read(state_of(narrow(width=4)))


def test_impossible_settings_are_errors() -> None:
    for bad in ({"margin": 0.0}, {"passes": 0}, {"learning_rate": float("nan")}, {"beside": 0}):
        with pytest.raises(InputError):
            FeatureConfig(**bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="96 probes"):
        writer().write(np.zeros(5, np.uint8), rng=np.random.default_rng(0))
    for probes in (np.zeros((2, 3), np.float32), np.zeros((2, 4, 8, 8)), np.full((1, 4, 8, 8), np.nan, "f4")):
        with pytest.raises(InputError):
            feature_reader(seed=SEED, probes=probes, dimension=64, profile="paper").project(shared())
    with pytest.raises(InputError):
        FeatureHinge(np.eye(4), images()[:4], np.zeros(3, np.uint8), margin=1.0, batch_size=2, seed=0)
    with pytest.raises(InputError):
        FeatureHinge(np.eye(4), images()[:4], np.zeros(4, np.uint8), margin=0.0, batch_size=2, seed=0)
