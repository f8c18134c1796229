"""Words are written into what a model says and read back, from the model or from its scores alone."""

import inspect
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from learning.synthetic import narrow, same, task, taught
from marking import test_feature
from readouts.making import feature_reader, output_reader
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.errors import InputError
from zktrace.learning.aggregation import fedavg
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.states import state_of
from zktrace.marking.feature import FeatureConfig, FeatureWriter
from zktrace.marking.output import OutputConfig, OutputWriter
from zktrace.readouts.outputs import OutputReader
from zktrace.readouts.reader import Terms
from zktrace.readouts.views import in_views, mean_view

PROBES, CLASSES = 160, 6
SEED = b"o" * 32
CODE = Code(key=CodeKey(secret=b"k" * 32), label="output", length=PROBES, colluders=2)
CONFIG = OutputConfig(passes=80, batch_size=32, beside=32, margin=1.0, companion=1.0, learning_rate=2e-4)


def shared() -> dict[str, np.ndarray]:
    return taught(width=8)


@cache
def images() -> np.ndarray:
    return task(PROBES + 120, seed=1)[0]


@cache
def support() -> Support:
    held, labels = task(5 * CLASSES, seed=2)
    return Support(images=held, labels=labels - 10)


@cache
def reader() -> OutputReader:
    return blank(blank().project(shared()))


def blank(reference: Any = None) -> OutputReader:
    asked = {"probes": images()[:PROBES], "support": support().images, "labels": support().labels}
    return output_reader(seed=SEED, length=PROBES, classes=CLASSES, probes=asked, reference=reference)


@cache
def writer() -> OutputWriter:
    return OutputWriter(
        shared(),
        seed=SEED,
        reference=reader().project(shared()),
        probes=images()[:PROBES],
        support=support(),
        beside=images()[PROBES:],
        config=CONFIG,
    )


def word(row: int) -> np.ndarray:
    return unpack(CODE.rows([row])[0], PROBES)


@cache
def copy(row: int) -> dict[str, np.ndarray]:
    return writer().write(word(row), rng=np.random.default_rng(row))


def named(values: Any) -> set[int]:
    rows = CODE.rows(range(6))
    evidence = Source(
        carrier="output",
        values=values,
        biases=CODE.biases,
        sums=lambda coefficients: sums(rows, coefficients),
        rows=CODE.rows,
    )
    return {each.recipient for each in investigate([evidence], level=Fraction(1, 1000)).named}


@pytest.mark.parametrize(
    ("both", "strength", "beside", "drawn"),
    [
        (False, 0.2655012, None, 429075337960558552),
        (True, 0.3968676, 0.06929381, 1134730160882148312),
    ],
)
def test_a_seed_has_the_outcome_it_always_had(
    both: bool, strength: float, beside: float | None, drawn: int
) -> None:
    """Numbers of the loop that `learning.loop` replaced; what is drawn is the same to the last bit."""
    rng, also = np.random.default_rng(7), unpack(test_feature.CODE.rows([0])[0], test_feature.PROBES)
    made = OutputWriter(
        shared(),
        seed=SEED,
        reference=reader().project(shared()),
        probes=images()[:PROBES],
        support=support(),
        beside=images()[PROBES:],
        config=replace(CONFIG, passes=3, batch_size=48),
    ).write(word(0), rng=rng, feature=(test_feature.small(), also) if both else None)
    assert (reader().read(made) * (2.0 * word(0) - 1)).mean() == pytest.approx(strength, rel=1e-2)
    assert rng.integers(1 << 60) == drawn
    if beside is not None:
        found = (test_feature.informed().read(made) * (2.0 * also - 1)).mean()
        assert found == pytest.approx(beside, rel=1e-2)


def test_a_reader_is_made_without_a_key_to_the_rows() -> None:
    assert set(inspect.signature(OutputReader).parameters) == {"terms", "reference"}
    taken = set(inspect.signature(Terms).parameters)
    given = {"carrier", "seed", "length", "profile", "dimension", "layers", "deviations", "probes", "names"}
    assert taken == {*given, "shared", "network", "frozen"}


def test_scores_are_minus_squared_distances_to_the_models_own_prototypes() -> None:
    model = backbone_of(shared())
    held, asked = (embed(model, each).astype(float) for each in (support().images, images()[:7]))
    prototypes = [held[support().labels == k].mean(axis=0) for k in range(CLASSES)]
    slow = [[-((x - p) ** 2).sum() for p in prototypes] for x in asked]
    assert class_scores(shared(), images()[:7], support()) == pytest.approx(
        np.array(slow), rel=1e-4, abs=1e-4
    )


def test_a_copy_carries_its_word_and_keeps_everything_but_the_last_convolutions() -> None:
    values = reader().read(copy(0))
    assert ((values > 0) == word(0)).mean() > 0.85
    changed = {name for name, value in shared().items() if not np.array_equal(value, copy(0)[name])}
    assert changed
    assert all(name.startswith("layer4.") for name in changed)
    assert all("conv" in name or "downsample.0" in name for name in changed)


def test_a_copy_is_named_and_nobody_else_from_its_scores_alone() -> None:
    reference = reader().reference
    assert reference is not None
    light = output_reader(seed=SEED, length=PROBES, classes=CLASSES, reference=reference)
    for row in (0, 3):
        shown = class_scores(copy(row), in_views(images()[:PROBES]), support())
        values = light.read_answers(mean_view(shown))
        assert np.array_equal(values, reader().read(copy(row)))
        assert named(values) == {row}
    assert named(reader().read(shared())) == set()


def test_two_averaging_colluders_are_named() -> None:
    mixed = fedavg([copy(0), copy(3)], [1, 1])
    assert named(reader().read(mixed)) <= {0, 3}
    assert named(reader().read(mixed))


def with_head(state: dict[str, np.ndarray], weight: np.ndarray) -> dict[str, np.ndarray]:
    return state | {"fc.weight": weight.astype(np.float32), "fc.bias": np.zeros(len(weight), np.float32)}


def test_a_rotation_of_the_features_changes_nothing() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 64)))[0]
    plain = reader().read(copy(0))
    assert reader().read(with_head(copy(0), turn)) == pytest.approx(plain, abs=1e-3 * np.abs(plain).max())


def test_a_classifier_is_taken_at_its_word_in_any_order_of_its_outputs() -> None:
    """A head 2 <f, p_k> has the copy's scores up to an offset a class; its outputs are then shuffled."""
    held = embed(backbone_of(copy(0)), support().images)
    prototypes = support().means @ held
    order = np.array([3, 1, 0, 2, 5, 4])
    bias = -(prototypes**2).sum(axis=1)
    suspect = with_head(copy(0), 2 * prototypes[order])
    suspect["fc.bias"] = bias[order].astype(np.float32)
    plain = reader().read(copy(0))
    assert reader().read(suspect) == pytest.approx(plain, abs=1e-2 * np.abs(plain).max())


def test_feature_and_output_words_are_written_in_one_run() -> None:
    code = Code(key=CodeKey(secret=b"k" * 32), label="feature", length=96, colluders=2)
    probes = images()[PROBES - 60 : PROBES + 36]  # some are probes of both
    config = FeatureConfig(passes=12, batch_size=32, beside=32, margin=0.5, learning_rate=3e-4)
    feature = FeatureWriter(
        shared(), seed=b"f" * 32, probes=probes, beside=images()[PROBES + 36 :], config=config
    )
    other = unpack(code.rows([2])[0], 96)
    shares: list[float] = []
    both = writer().write(
        word(2), rng=np.random.default_rng(2), feature=(feature, other), progress=shares.append
    )
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert named(reader().read(both)) == {2}
    own = feature_reader(seed=b"f" * 32, probes=probes, dimension=64)
    values = own.project(both) - own.project(shared())
    assert ((values > 0) == other).mean() > 0.85


def test_a_row_has_one_outcome() -> None:
    assert same(copy(0), writer().write(word(0), rng=np.random.default_rng(0)))


def test_what_cannot_be_written_or_read_is_refused() -> None:
    with pytest.raises(InputError, match="word"):
        writer().write(word(0)[:-1], rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="channels"):
        reader().read(state_of(narrow(channels=3)))
    with pytest.raises(InputError, match="own scores"):
        blank().read(shared())
    for labels in ([0, 0, 0], [0, 2, 2], [1, 1, 2], [0, 1]):
        with pytest.raises(InputError):
            Support(images=images()[:3], labels=np.array(labels))
    for bad in ({"margin": 0.0}, {"passes": 0}, {"weight": np.nan}, {"keep": -1.0}, {"sharpness": 0.0}):
        with pytest.raises(InputError):
            OutputConfig(**bad)  # type: ignore[arg-type]
