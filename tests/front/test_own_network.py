"""A network of one's own by the front door: feature and output carriers, from release to judge."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import nn

import zktrace
from learning import foreign
from learning.synthetic import task
from one_thread import one_thread
from zktrace.errors import InputError
from zktrace.learning.network import OwnNetwork, embedding_of
from zktrace.learning.states import state_of
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, open_model
from zktrace.readouts.network import Network

__all__ = ["one_thread"]
MARK = {"passes": 12, "batch_size": 32, "beside": 32, "margin": 0.5, "learning_rate": 3e-4}
BOTH = CopySettings(
    marks={"feature": MARK, "output": MARK | {"passes": 60, "margin": 0.7, "companion": 6.0, "keep": 1.0}}
)
FEW = CopySettings(marks={"feature": MARK | {"passes": 15, "learning_rate": 1e-4}})
ALONE = CopySettings(marks={"feature": MARK | {"passes": 30, "learning_rate": 1e-4}})


def workspace(folder: Path) -> zktrace.Workspace:
    home = zktrace.Workspace.create(
        folder / "op", title="own", budget="1/10", carriers=["spread", "feature", "output"]
    )
    for name in ("alpha", "beta", "gamma"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    return home


def moved(before: dict[str, Any], after: Any) -> set[str]:
    return {name for name, value in before.items() if not np.array_equal(value, after[name])}


@pytest.mark.parametrize(
    ("network", "carriers", "settings", "trained"),
    [
        (foreign.plain_cnn, ("feature", "output"), BOTH, {"5.weight", "5.bias"}),
        (Network(foreign.tiny_vit, train="blocks.1.*"), ("feature",), FEW, {"blocks.1."}),
        (Network(foreign.embedder, features="3"), ("feature", "output"), BOTH, {"0.weight", "0.bias"}),
        (foreign.reader, ("feature",), FEW, {"body."}),
    ],
    ids=["a plain CNN", "a ViT", "an MLP on vectors, no head", "words"],
)
def test_a_copy_is_named_by_every_carrier_and_the_judge_agrees(
    tmp_path: Path,
    network: Network | Callable[[], nn.Module],
    carriers: tuple[str, ...],
    settings: CopySettings,
    trained: set[str],
) -> None:
    make = network.make if isinstance(network, Network) else network
    others = {foreign.embedder: foreign.vectors, foreign.reader: foreign.sentences}
    state = state_of(make()) if make in others else foreign.taught(make)
    inputs = others[make](400, seed=1) if make in others else foreign.pool()
    home = workspace(tmp_path)
    home.release(state, carriers=carriers, inputs=inputs, network=network, length=128)
    release = home.opened("r1", network=network)  # as in another process
    copy = home.dispatch("beta", release, settings=settings)
    assert copy.weak == ()
    changed = moved(state, copy.arrays)
    assert changed
    assert all(any(name.startswith(each) for each in trained) for name in changed)
    for carrier in carriers:
        case = home.trace(copy.arrays, release=release, carriers=[carrier], budget="1/100", align=False)
        assert case.named == ("beta",)
        probes = "probes" if carrier == "feature" else "queries"
        found = zktrace.judge(
            case.evidence,
            head=home.head,
            suspect=copy.arrays,
            shared=state,
            probes=[release.folder.path / f"{probes}.safetensors"],
            network=network,
        )
        assert found.named == ("beta",)
        assert any("values of the suspect read again" in each for each in found.steps[4].checked)


def test_copies_of_a_closed_form_carrier_are_trained_on_from(tmp_path: Path) -> None:
    """Spread is written first, features after it: both are read from one copy."""
    home, state = workspace(tmp_path), foreign.taught(foreign.plain_cnn)
    home.release(
        state,
        carriers=["spread", "feature"],
        inputs=foreign.pool(),
        network=foreign.plain_cnn,
        length={"spread": 128, "feature": 128},
    )
    copy = home.dispatch("gamma", home.opened(network=foreign.plain_cnn), settings=ALONE)
    assert copy.weak == ()
    release = home.opened(network=foreign.plain_cnn)
    assert home.trace(copy.arrays, release=release, carriers=["spread"], align=False).named == ("gamma",)


@pytest.mark.slow
def test_several_processes_train_copies_of_a_network_that_can_be_found(tmp_path: Path) -> None:
    home, state = workspace(tmp_path), foreign.taught(foreign.plain_cnn)
    release = home.release(
        state, carriers=["feature"], inputs=foreign.pool(), network=foreign.plain_cnn, length=128
    )
    copies = list(home.dispatch_all(["alpha", "beta"], release, settings=ALONE, jobs=2))
    again = home.dispatch_all(["alpha"], release, settings=ALONE, out=tmp_path / "elsewhere")
    assert {copy.station: copy.digest for copy in copies}["alpha"] == next(again).digest


def test_a_network_that_cannot_be_handed_to_another_process_is_one_line(tmp_path: Path) -> None:
    home, state = workspace(tmp_path), foreign.taught(foreign.plain_cnn)
    release = home.release(
        state,
        carriers=["feature"],
        inputs=foreign.pool(),
        network=lambda: foreign.plain_cnn().eval(),
        length=128,
    )
    with pytest.raises(InputError, match="jobs"):
        list(home.dispatch_all(None, release, settings=ALONE, jobs=2))


# ── what is taken of a module ───────────────────────────────────────────────────────────────────────────────


def test_features_are_what_passes_the_module_that_was_named() -> None:
    state, images = foreign.taught(foreign.plain_cnn), task(5)[0]
    module = foreign.plain_cnn().eval()
    module.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    with torch.no_grad():
        for name, layers in (("", 7), ("6", 7), ("2", 3), ("7", 8)):
            found = embedding_of(state, images, Network(foreign.plain_cnn, features=name))
            wanted = module[:layers](torch.from_numpy(images)).flatten(1)  # type: ignore[index]
            said = found.said(torch.from_numpy(images))
            assert torch.equal(said.features, wanted)
            assert found.features == wanted.shape[1]
            assert said.outputs is not None
            assert torch.equal(said.outputs, module(torch.from_numpy(images)))


def test_the_last_stage_is_the_last_part_with_weights_beside_the_head() -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 6), nn.LayerNorm(6))
            self.last = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.last(self.net(x))
            return found

    def moved_in(make: Callable[[], nn.Module], size: tuple[int, ...], train: str = "") -> set[str]:
        state = state_of(make())
        made = embedding_of(state, np.zeros((1, *size), np.float32), Network(make, train=train))
        assert isinstance(made, OwnNetwork)
        inside = {id(each) for each in made.stage()}
        return {name for name, each in made.module.named_parameters() if id(each) in inside}

    assert moved_in(Wrapped, (4,)) == {"last.0.weight", "last.0.bias"}  # neither head nor normalisation
    assert moved_in(foreign.plain_cnn, (4, 32, 32)) == {"5.weight", "5.bias"}
    assert all(name.startswith("blocks.") for name in moved_in(foreign.tiny_vit, (4, 32, 32)))
    assert moved_in(Wrapped, (4,), train="net.0.*") == {"net.0.weight", "net.0.bias"}
    assert moved_in(lambda: nn.Sequential(nn.Linear(4, 2)), (4,)) == {"0.weight", "0.bias"}
    with pytest.raises(InputError, match="no parameter of the network is called as 'body"):
        moved_in(Wrapped, (4,), train="body.*")


def odd(out: Any) -> Callable[[], nn.Module]:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2, 2))

        def forward(self, x: torch.Tensor) -> Any:
            return out(x)

    return Odd


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (odd(lambda x: [x]), "network's output of 1 inputs: list, not a row for each"),
        (odd(lambda x: x.sum()), "not a row for each"),
        (odd(lambda x: x[:0]), "not a row for each"),
        (odd(lambda x: x.nothing), "raised AttributeError"),
        (lambda: nn.Sequential(nn.ReLU()), "the network has no parameters"),
    ],
)
def test_a_module_that_does_not_speak_is_one_line(make: Callable[[], nn.Module], words: str) -> None:
    state = ModelState.from_arrays({"weight": np.zeros((2, 2), np.float32)})
    with pytest.raises(InputError, match=words) as raised:
        embedding_of(state, np.zeros((3, 4), np.float32), Network(make))
    assert "\n" not in str(raised.value)


def test_arrays_that_do_not_fit_are_told_by_name() -> None:
    state, images = foreign.taught(foreign.plain_cnn), task(2)[0]
    for name, wrong, words in (
        ("5.weight", np.full((48, 384), np.inf, np.float32), "'5.weight' has numbers that are not finite"),
        ("5.weight", np.zeros((48, 384), np.int8), "'5.weight' is of type int8"),
        ("5.weight", np.zeros((48, 4), np.float32), "'5.weight' has shape"),
    ):
        with pytest.raises(InputError, match=words):
            embedding_of({**state, name: wrong}, images, Network(foreign.plain_cnn))
    lacking = {name: value for name, value in state.items() if name != "5.weight"}
    with pytest.raises(InputError, match=r"no '5\.weight', which the network has"):
        embedding_of(lacking, images, Network(foreign.plain_cnn))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((np.zeros((4, 3)), np.zeros(5, int)), "labels are a whole number for each"),
        ((np.zeros((4, 3)), np.zeros(4)), "labels are a whole number for each"),
        ((np.zeros(4), np.zeros(4, int)), "inputs are numbers"),
        ((np.full((4, 3), np.nan), np.zeros(4, int)), "not finite"),
        ((np.array([["a", "b"]]), np.zeros(1, int)), "inputs are numbers"),
        ({"inputs": np.zeros((4, 3))}, "no array 'labels'"),
        ((np.zeros((4, 3)),), "two arrays, not 1"),
        (7, "a path or arrays, not int"),
    ],
)
def test_inputs_that_are_none_are_one_line(tmp_path: Path, inputs: Any, words: str) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="own", budget="1/10", carriers=["feature"])
    with pytest.raises(InputError, match=words):
        home.release({"w": np.zeros(3)}, inputs=inputs, network=foreign.plain_cnn)


def test_a_network_is_a_function() -> None:
    with pytest.raises(InputError, match="a function that makes a torch module, not int"):
        Network(3)  # type: ignore[arg-type]


def test_a_saved_pool_is_read_from_a_folder_as_from_a_file(tmp_path: Path) -> None:
    from zktrace.front.inputs import pool_of

    inputs, labels = foreign.vectors(30)
    np.savez(tmp_path / "all.npz", inputs=inputs.astype(np.float64), labels=labels.astype(np.int32))
    (tmp_path / "all").mkdir()
    np.save(tmp_path / "all" / "inputs.npy", inputs)
    np.save(tmp_path / "all" / "labels.npy", labels)
    for each in (tmp_path / "all.npz", tmp_path / "all", {"inputs": inputs, "labels": labels}):
        found = pool_of(each)
        assert (found.images.dtype, found.labels.dtype) == (np.float32, np.int64)
        assert np.array_equal(found.images, inputs)
        assert np.array_equal(found.labels, labels)
    (tmp_path / "all" / "inputs.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match="not an npy file"):
        pool_of(tmp_path / "all")
    np.save(tmp_path / "all" / "inputs.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not an npy file"):
        pool_of(tmp_path / "all")


def test_a_copy_keeps_names_and_types_of_the_model(tmp_path: Path) -> None:
    """Half-precision arrays under a prefix come back as such."""
    state = {
        f"module.{name}": value.astype(np.float16)
        for name, value in foreign.taught(foreign.plain_cnn).items()
    }
    home = workspace(tmp_path)
    release = home.release(
        state, carriers=["feature"], inputs=foreign.pool(), network=foreign.plain_cnn, length=128
    )
    copy = home.dispatch("alpha", release, settings=ALONE)
    found = open_model(copy.path)
    assert list(found) == sorted(state)
    assert {each.dtype for each in found.tensors()} == {"float16"}
    assert moved(state, found) == {"module.5.weight", "module.5.bias"}
