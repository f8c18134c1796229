"""Models without BatchNorm, in every element type, from release to judge by defaults."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.court import Policy
from zktrace.errors import EvidenceRejected, InputError, Refused
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, Tensor, save_model

NAMES = tuple(f"station-{i}" for i in range(6))


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """As a small transformer has them."""
    rng = np.random.default_rng(seed)
    made = {"embed.weight": rng.normal(0, 0.02, (500, 128)).astype(np.float32)}
    for block in range(2):
        made[f"blocks.{block}.norm.weight"] = rng.normal(1, 0.1, 128).astype(np.float32)
        made[f"blocks.{block}.attn.weight"] = rng.normal(0, 0.05, (384, 128)).astype(np.float32)
        made[f"blocks.{block}.up.weight"] = rng.normal(0, 0.08, (256, 128)).astype(np.float32)
        made[f"blocks.{block}.up.bias"] = rng.normal(0, 0.1, 256).astype(np.float32)
    return made


def state(dtype: str) -> ModelState:
    def tensor(name: str, array: np.ndarray) -> Tensor:
        if dtype != "bfloat16":
            return Tensor.from_array(name, array.astype(dtype))
        bits = (array.view(np.uint32) >> 16).astype(np.uint16)
        return Tensor(name=name, dtype=dtype, shape=array.shape, data=bits.data)

    return ModelState(tensor(name, array) for name, array in arrays().items())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> zktrace.Workspace:
    made = zktrace.Workspace.create(tmp_path_factory.mktemp("w") / "op", title="a federation", budget="1/2")
    for name in NAMES:
        made.enrol(name, zktrace.Credential.new(name).request(made.setup))
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        made.release(state(dtype), name=dtype)
    return made


def eight_bits(array: np.ndarray) -> np.ndarray:
    step = (array.max() - array.min()) / 255
    return (np.round(array / step) * step).astype(array.dtype) if step else array


def half_pruned(array: np.ndarray) -> np.ndarray:
    return np.where(np.abs(array) < np.median(np.abs(array)), 0, array).astype(array.dtype)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as it is": lambda array: array,
    "float16": lambda array: array.astype(np.float16),
    "8 bits": eight_bits,
    "half pruned": half_pruned,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_leaked_copy_is_traced_and_judged(home: zktrace.Workspace, dtype: str, change: str) -> None:
    copy = home.dispatch("station-4", dtype)
    assert copy.weak in ((), None)  # None: it was there
    suspect = {name: CHANGES[change](np.array(array)) for name, array in copy.arrays.items()}
    case = home.trace(suspect, release=dtype, budget="1/1000000")
    assert case.named == ("station-4",)
    found = zktrace.judge(
        case.evidence,
        head=home.head,
        suspect=suspect,
        shared=home.opened(dtype).shared,
        policy=Policy(require_suspect=True, require_shared=True, require_readout=True),
    )
    assert found.named == ("station-4",)


def test_a_copy_keeps_its_element_types(home: zktrace.Workspace) -> None:
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        assert {each.dtype for each in home.dispatch("station-1", dtype).arrays.tensors()} == {dtype}


@pytest.mark.parametrize("members", [(0, 1), (1, 3, 5), (0, 1, 2, 3)])
def test_everybody_in_an_average_is_named(home: zktrace.Workspace, members: tuple[int, ...]) -> None:
    who = tuple(NAMES[at] for at in members)
    copies = [home.dispatch(name, "float32").arrays for name in who]
    suspect = {name: np.mean([copy[name] for copy in copies], axis=0) for name in copies[0]}
    case = home.trace(suspect, release="float32", budget="1/1000000")
    assert set(case.named) == set(who)
    found = zktrace.judge(
        case.evidence, head=home.head, suspect=suspect, shared=home.opened("float32").shared
    )
    assert set(found.named) == set(who)


@pytest.mark.parametrize("seed", range(3))
def test_models_that_were_never_marked_name_nobody(home: zktrace.Workspace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    trained_on = {
        name: (array + 0.05 * array.std() * rng.standard_normal(array.shape)).astype(np.float32)
        for name, array in arrays().items()
    }
    for suspect in (arrays(seed + 1), arrays(), trained_on):
        assert home.trace(suspect, release="float32", budget="1/1000000").named == ()


def test_a_judge_without_the_shared_model_says_what_it_could_not_read(home: zktrace.Workspace) -> None:
    suspect = home.dispatch("station-2", "float32").arrays
    case = home.trace(suspect, release="float32", budget="1/1000000")
    found = zktrace.judge(case.evidence, head=home.head, suspect=suspect)
    assert found.named == ("station-2",)
    assert any(
        "read beside the release's shared model" in each for step in found.steps for each in step.unchecked
    )
    with pytest.raises(EvidenceRejected, match="readout that this judge made"):
        zktrace.judge(case.evidence, head=home.head, suspect=suspect, policy=Policy(require_readout=True))
    with pytest.raises(EvidenceRejected, match="the shared model given"):
        zktrace.judge(case.evidence, head=home.head, suspect=suspect, shared=suspect)


def test_a_model_of_marked_copies_is_no_shared_model(home: zktrace.Workspace) -> None:
    copies = [home.dispatch(name, "float32").arrays for name in NAMES]
    mean = {name: np.mean([copy[name] for copy in copies], axis=0) for name in copies[0]}
    with pytest.raises(Refused, match="carries rows of copies of float32"):
        home.release(mean)


def test_a_model_that_is_too_small_is_told_what_it_bears(home: zktrace.Workspace, tmp_path: Path) -> None:
    small = {"w": np.random.default_rng(0).normal(size=(50, 100)).astype(np.float32)}
    with pytest.raises(InputError, match="from 128 to 256"):
        home.release(small, length=1024)
    with pytest.raises(InputError, match="a judge asks for 128"):
        home.release(small, length=64)
    with pytest.raises(InputError, match="too small to carry"):
        home.release({"w": np.ones((8, 8), np.float32)})
    with pytest.raises(InputError, match="do not carry it"):
        home.release(small, length={"weight": 128})
    with pytest.raises(InputError, match="no BatchNorm scales"):
        home.release(small, carriers=("spread", "weight"))


def test_scales_and_weights_carry_side_by_side(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="both", budget="1/10")
    for name in NAMES[:3]:
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    rng = np.random.default_rng(3)
    model = arrays()
    for layer in range(12):
        model[f"bn{layer}.weight"] = rng.normal(1, 0.1, 64).astype(np.float32)
        model[f"bn{layer}.running_var"] = np.ones(64, np.float32)
    save_model(tmp_path / "model.safetensors", model)
    release = home.release(
        tmp_path / "model.safetensors", carriers=("spread", "weight"), length={"spread": 256, "weight": 300}
    )
    assert [(each.carrier, each.length, each.law) for each in release.record.layouts] == [
        ("spread", 256, "fair"),
        ("weight", 300, release.layout("weight").law),
    ]
    copy = home.dispatch("station-1", settings=CopySettings(strength=0.02)).arrays
    for lost in ("bn", "blocks", ""):  # each carrier by itself is enough
        suspect = {
            name: model[name] if lost and name.startswith(lost) else array for name, array in copy.items()
        }
        assert home.trace(suspect, budget="1/1000000").named == ("station-1",)
