"""Rewritten copies are brought back: the owner is certified again, and nothing else is changed."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

from attacks.lived import apart, features, lived
from readouts.making import weight_reader
from zktrace.attacks.isometry import isometry
from zktrace.attacks.rewrite import permute, rescale
from zktrace.attacks.scales import batch_norms, noise_scales, prune_scales, quantise_all
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.errors import InputError
from zktrace.marking.weight import WeightWriter
from zktrace.models import ModelState
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.scales import gather, layer_sizes

State = dict[str, NDArray[Any]]
SEED, LENGTH, OWNER = b"d" * 32, 256, 3
CODE = Code(key=CodeKey(secret=b"k" * 32), label="weight", length=LENGTH, colluders=2)
ROWS = CODE.rows(range(10))


@cache
def shared(depth: int = 18) -> ModelState:
    return ModelState.from_arrays(lived(depth=depth))


@cache
def copy(depth: int = 18) -> tuple[State, float]:
    """A copy with the owner's row, and its amplitude."""
    model = shared(depth)
    writer = WeightWriter(seed=SEED, length=LENGTH, layers=layer_sizes(model))
    made = writer.write(model, unpack(ROWS[OWNER], LENGTH))
    return dict(made.state), made.amplitude


def read(state: State, depth: int = 18) -> NDArray[np.float64]:
    model = shared(depth)
    layers = layer_sizes(model)
    blank = weight_reader(seed=SEED, length=LENGTH, layers=layers, profile="informed")
    reader = weight_reader(
        seed=SEED, length=LENGTH, layers=layers, profile="informed", reference=blank.project(model)
    )
    return reader.read(state)


def named(state: State, depth: int = 18) -> set[int]:
    evidence = Source(
        carrier="weight",
        values=read(state, depth),
        biases=CODE.biases,
        sums=lambda coefficients: sums(ROWS, coefficients),
        rows=CODE.rows,
    )
    return {each.recipient for each in investigate([evidence], level=Fraction(1, 1000)).named}


def rewritten(kind: str, state: State, seed: int = 1) -> State:
    rng = np.random.default_rng(seed)
    return {
        "rescaled": lambda: rescale(state, rng),
        "inside norms": lambda: rescale(state, rng, norms=True),
        "permuted": lambda: permute(state, rng),
        "both": lambda: permute(rescale(state, rng), rng),
        "features too": lambda: permute(rescale(state, rng, features=True, norms=True), rng, features=True),
    }[kind]()


KINDS = ("rescaled", "inside norms", "permuted", "both", "features too")


@pytest.mark.parametrize(("kind", "depth"), [*((kind, 18) for kind in KINDS), ("features too", 34)])
def test_a_rewrite_erases_the_mark_and_alignment_brings_it_back(kind: str, depth: int) -> None:
    state, amplitude = copy(depth)
    suspect = rewritten(kind, state)
    assert named(state, depth) == {OWNER}
    assert named(suspect, depth) == set()
    aligned = align_scales(suspect, shared(depth))
    assert named(aligned, depth) == {OWNER}
    assert read(aligned, depth) == pytest.approx(read(state, depth), abs=0.001 * amplitude)
    assert apart(features(aligned), features(state)) < 1e-4


@pytest.mark.parametrize("kind", KINDS[:4])
def test_whole_states_come_back(kind: str) -> None:
    state, _ = copy()
    aligned = align_scales(rewritten(kind, state), shared())
    assert aligned.keys() == state.keys()
    for name, array in state.items():
        assert aligned[name].dtype == array.dtype
        assert np.allclose(aligned[name], array, rtol=1e-3, atol=1e-5), name


@pytest.mark.parametrize("kind", ["rescaled", "permuted", "both"])
def test_rewritten_and_then_quantised(kind: str) -> None:
    state, _ = copy()
    spread = {"permuted": permute(state, np.random.default_rng(2))}
    scaled = rescale(state, np.random.default_rng(2), spread=0.7)
    spread |= {"rescaled": scaled, "both": permute(scaled, np.random.default_rng(3))}
    suspect = quantise_all(spread[kind], bits=8)
    assert named(suspect) == set()
    assert named(align_scales(suspect, shared())) == {OWNER}


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_rewritten_and_then_trained_a_little(share: float) -> None:
    """Weights as far from the copy's as a little training brings them, in every array."""
    state, _ = copy()
    rng = np.random.default_rng(4)
    suspect = permute(rescale(state, rng, spread=0.7), rng)
    for name, array in suspect.items():
        if array.dtype.kind == "f":
            size = share * np.abs(array) if name.endswith("running_var") else share * array.std()
            suspect[name] = (array + size * rng.standard_normal(array.shape)).astype(array.dtype)
    assert named(suspect) == set()
    assert named(align_scales(suspect, shared())) == {OWNER}


def test_what_was_not_rewritten_is_left_alone() -> None:
    state, amplitude = copy()
    assert gather(align_scales(state, shared())) == pytest.approx(gather(state), rel=1e-6)
    assert gather(align_scales(shared(), shared())) == pytest.approx(gather(shared()), rel=1e-6)
    noisy = noise_scales(state, sigma=0.2, rng=np.random.default_rng(1))
    assert gather(align_scales(noisy, shared())) == pytest.approx(gather(noisy), rel=1e-5)
    coarse = quantise_all(state, bits=8)
    assert read(align_scales(coarse, shared())) == pytest.approx(read(coarse), abs=0.2 * amplitude)


def test_channels_that_are_gone_are_no_obstacle() -> None:
    state, amplitude = copy()
    pruned = prune_scales(state, share=0.1, structured=True)
    aligned = align_scales(permute(pruned, np.random.default_rng(5)), shared())
    assert read(aligned) == pytest.approx(read(pruned), abs=0.01 * amplitude)


def test_another_model_names_nobody() -> None:
    aligned = align_scales(lived(seed=9), shared())
    assert aligned.keys() == shared().keys()
    assert named(aligned) == set()


def test_prefixes_half_precision_and_a_last_layer_are_taken() -> None:
    state, amplitude = copy()
    suspect = permute(isometry(state, np.random.default_rng(1)), np.random.default_rng(2))
    turned = features(suspect)
    aligned = align_scales({f"module.{name}": each for name, each in suspect.items()}, shared())
    assert read(aligned) == pytest.approx(read(state), abs=0.001 * amplitude)
    assert apart(features(aligned), turned) < 1e-4
    half = {
        name: each.astype(np.float16) if each.dtype.kind == "f" else each for name, each in suspect.items()
    }
    aligned = align_scales(half, shared())
    assert aligned["bn1.weight"].dtype == np.float32
    assert named(aligned) == {OWNER}


def test_nothing_is_touched_or_shared() -> None:
    state, _ = copy()
    before = {name: each.copy() for name, each in state.items()}
    for array in align_scales(state, shared()).values():
        array[...] = 0
    assert all(np.array_equal(state[name], before[name]) for name in state)


def spoiled(name: str, array: NDArray[Any]) -> State:
    return copy()[0] | {name: array}


@pytest.mark.parametrize(
    ("suspect", "words"),
    [
        (lambda: lived(depth=34), "deeper"),
        (lambda: lived(width=4), "same architecture"),
        (lambda: spoiled("conv1.weight", np.full((8, 4, 7, 7), np.nan, np.float32)), "finite"),
        (lambda: spoiled("conv1.weight", np.zeros((8, 4, 7, 7), np.int64)), "real numbers"),
        (lambda: spoiled("bn1.running_var", -np.ones(8, np.float32)), "negative"),
        (lambda: spoiled("layer1.0.conv1.weight", np.full((8, 8, 3, 3), 1e300)), "aligned|square"),
        (lambda: spoiled("fc.weight", np.ones((3, 5), np.float32)), "needs"),
        (lambda: {"a.weight": np.ones(4), "a.running_var": np.ones(4)}, "lacks"),
        (dict, "no BatchNorm"),
    ],
)
def test_what_cannot_be_aligned_is_one_line(suspect: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        align_scales(suspect(), shared())
    assert "\n" not in str(caught.value)


def test_only_resnets_are_references() -> None:
    model = {"bn.weight": np.ones(4), "bn.running_var": np.ones(4)}
    with pytest.raises(InputError, match="ResNets of basic blocks"):
        align_scales(model, model)


def test_statistics_are_those_of_the_reference() -> None:
    state, _ = copy()
    aligned = align_scales(rewritten("inside norms", state), shared())
    for bn in batch_norms(state):
        for part in ("running_mean", "running_var"):
            assert aligned[f"{bn}.{part}"] == pytest.approx(state[f"{bn}.{part}"], rel=1e-3, abs=1e-5)
