"""What a suspect may look like, and what the weight reader says of it."""

import inspect
from typing import Any

import numpy as np
import pytest

from readouts.making import weight_reader
from zktrace.errors import InputError
from zktrace.models import ModelState, Tensor
from zktrace.readouts.directions import Directions
from zktrace.readouts.reader import Terms
from zktrace.readouts.scales import gather
from zktrace.readouts.suspects import common_prefix, layer_names, plain
from zktrace.readouts.weight import WeightReader

LAYERS = {"bn1": 12, "layer1.0.bn1": 12, "layer1.0.bn2": 20, "layer2.0.downsample.1": 8}
SIZES = (12, 12, 20, 8)


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {"conv1.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32)}
    for name, size in LAYERS.items():
        arrays[f"{name}.weight"] = (1 + 0.1 * rng.normal(size=size)).astype(np.float32)
        arrays[f"{name}.bias"] = rng.normal(size=size).astype(np.float32)
        arrays[f"{name}.running_mean"] = rng.normal(size=size).astype(np.float32)
        arrays[f"{name}.running_var"] = np.ones(size, np.float32)
        arrays[f"{name}.num_batches_tracked"] = np.array(7)
    return arrays


def reader(profile: Any = "informed", reference: np.ndarray | None = None) -> WeightReader:
    return weight_reader(seed=b"s" * 32, length=16, layers=SIZES, profile=profile, reference=reference)


def test_a_reader_is_made_without_a_key_to_the_rows() -> None:
    assert set(inspect.signature(WeightReader).parameters) == {"terms", "reference"}
    taken = set(inspect.signature(Terms).parameters)
    assert taken == {
        *("carrier", "seed", "length", "profile", "dimension"),
        *("layers", "deviations", "probes", "names", "shared", "network", "frozen"),
    }


def test_the_paper_reads_the_scales_as_they_are() -> None:
    arrays = model()
    directions = Directions(label="weight", seed=b"s" * 32, dimension=52, count=16).block(0, 16)
    assert reader("paper").read(arrays) == pytest.approx(directions @ gather(arrays))


def test_the_informed_reading_is_the_centred_difference() -> None:
    shared, suspect = model(0), model(1)
    found = reader(reference=reader().project(shared)).read(suspect)
    difference = []
    for name in LAYERS:
        part = suspect[f"{name}.weight"].astype(float) - shared[f"{name}.weight"].astype(float)
        difference.append(part - part.mean())
    directions = Directions(label="weight", seed=b"s" * 32, dimension=52, count=16).block(0, 16)
    assert found == pytest.approx(directions @ np.concatenate(difference))
    assert reader(reference=reader().project(shared)).read(shared).tolist() == [0.0] * 16


def test_the_mean_of_a_layer_is_not_read() -> None:
    shared, moved = model(), model()
    moved["bn1.weight"] = moved["bn1.weight"] + np.float32(0.5)
    assert reader(reference=reader().project(shared)).read(moved) == pytest.approx(np.zeros(16), abs=1e-6)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod.backbone.", "a.b."])
def test_prefixes_and_heads_make_no_difference(prefix: str) -> None:
    shared, suspect = model(0), model(1)
    renamed = {prefix + name: each for name, each in suspect.items()}
    renamed |= {"head.weight": np.ones((5, 8), np.float32), "fc.bias": np.array([np.nan])}
    mine = reader(reference=reader().project(shared))
    assert mine.read(renamed).tolist() == mine.read(suspect).tolist()
    assert plain(renamed).keys() == suspect.keys()


def test_plain_names_stay() -> None:
    assert plain(model()).keys() == model().keys()
    assert common_prefix(["bn1"]) == ""
    assert common_prefix(["net.bn1"]) == "net."
    assert common_prefix(["net.a.bn1", "net.ab.bn1"]) == "net."
    assert common_prefix([]) == ""


@pytest.mark.parametrize(("kind", "error"), [("float16", 2e-3), ("float64", 1e-9), ("bfloat16", 2e-2)])
def test_element_types_are_read_as_what_they_are(kind: str, error: float) -> None:
    shared, suspect = model(0), model(1)
    mine = reader(reference=reader().project(shared))
    if kind == "bfloat16":
        state = ModelState(
            Tensor(name=name, dtype=kind, shape=each.shape, data=_truncated(each).data)
            if each.dtype == np.float32
            else Tensor.from_array(name, each)
            for name, each in suspect.items()
        )
        found = mine.read(state)
    else:
        found = mine.read({k: v.astype(kind) if v.dtype == np.float32 else v for k, v in suspect.items()})
    assert found == pytest.approx(mine.read(suspect), abs=error)


def _truncated(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((array.view(np.uint32) >> 16).astype("<u2"))


def _without(name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in model().items() if not key.startswith(name)}


def _with(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    return model() | {name: value}


@pytest.mark.parametrize(
    ("suspect", "words"),
    [
        ({}, "no BatchNorm scales"),
        ({"conv1.weight": np.ones(3)}, "no BatchNorm scales"),
        (_without("layer2"), "44 BatchNorm scales in 3 layers, the release 52 in 4: 1 layers less"),
        (_without("bn1.weight"), "layer 2 has 20 scales, not 12"),
        (_with("bn1.weight", np.full(12, np.nan, np.float32)), "bn1.weight.*not finite"),
        (_with("bn1.weight", np.full(12, np.inf, np.float16)), "bn1.weight.*not finite"),
        (_with("bn1.weight", np.ones(12, np.int8)), "scales of type int8"),
        (_with("bn1.weight", np.ones((3, 4), np.float32)), "not the scale of a BatchNorm layer"),
        (_with("bn1.weight", np.full(12, 1.7e308)), "too large"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(suspect: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(InputError, match=words):
        reader(reference=np.zeros(16)).read(suspect)


@pytest.mark.parametrize(
    ("profile", "reference", "words"),
    [
        ("paper", np.zeros(16), "without a reference"),
        ("informed", np.zeros(15), "16 finite numbers"),
        ("informed", np.full(16, np.nan), "16 finite numbers"),
        ("sideways", None, "not known"),
    ],
)
def test_a_reference_must_go_with_its_profile(profile: str, reference: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        reader(profile, reference)


def test_an_informed_reader_without_a_reference_reads_nothing() -> None:
    with pytest.raises(InputError, match="own readout"):
        reader().read(model())


def test_layers_under_other_names_are_refused_because_their_order_would_be_a_guess() -> None:
    sized = dict.fromkeys(LAYERS, 12)  # all alike: sizes tell nothing
    arrays: dict[str, Any] = {}
    for at, (name, size) in enumerate(sized.items()):
        arrays[f"{name}.weight"] = np.full(size, 1.0 + at) + np.arange(size) / 7
        arrays[f"{name}.running_var"] = np.ones(size)
    mine = weight_reader(
        seed=b"s" * 32, length=16, layers=(12,) * 4, profile="paper", names=layer_names(arrays)
    )
    assert mine.terms.names == tuple(LAYERS)
    known = mine.read({f"module.{name}": each for name, each in arrays.items()})
    assert known.tolist() == mine.read(arrays).tolist()
    renamed = {
        name.replace("bn1", "zz", 1) if name[0] == "b" else name: each for name, each in arrays.items()
    }
    blind = weight_reader(seed=b"s" * 32, length=16, layers=(12,) * 4, profile="paper")
    assert blind.read(renamed).tolist() != known.tolist()  # read, and read wrongly
    with pytest.raises(InputError, match=r"'zz' instead of 'bn1'.*rename the suspect's to fit"):
        mine.read(renamed)
    hostile = {f"a\n{at}²{part}": each for at, (part, each) in enumerate(arrays.items())}
    hostile |= {f"{at}\x1b.{part}": np.ones(12) for at in range(9) for part in ("weight", "running_var")}
    with pytest.raises(InputError, match=r"and 6 more instead of 'bn1', 'layer1.0.bn1', .* and 1 more"):
        mine.read(hostile)
