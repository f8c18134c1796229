"""Rewrites keep what a transformer computes, and leave no weight as it was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

from attacks.lived import apart
from attacks.small_transformers import language, outputs, vision
from zktrace.attacks.transformers import (
    LANGUAGE,
    VISION,
    Graph,
    disguise,
    permute_heads,
    rescale_heads,
    rotate_stream,
)
from zktrace.cli.app import run
from zktrace.errors import InputError
from zktrace.models import open_model, save_model

State = dict[str, NDArray[Any]]
GATED = replace(LANGUAGE, gate="blocks.{}.mlp.gate.weight")
NETWORKS = [
    pytest.param(language(), LANGUAGE, id="language"),
    pytest.param(language(gated=True), GATED, id="gated"),
    pytest.param(vision(), VISION, id="vision"),
]
INSIDE = ("attn.q", "attn.k", "attn.v", "attn.o", "mlp.up", "mlp.down")


@pytest.mark.parametrize(("state", "graph"), NETWORKS)
def test_outputs_stay_and_weights_do_not(state: State, graph: Graph) -> None:
    before, rng = outputs(state), np.random.default_rng(1)
    turned = rotate_stream(state, graph, rng)
    rewrites = {
        "permuted": permute_heads(state, graph, rng),
        "rescaled": rescale_heads(state, graph, rng),
        "rotated": turned,
        "all": rescale_heads(permute_heads(turned, graph, rng), graph, rng),
    }
    for how, after in rewrites.items():
        assert apart(outputs(after), before) < 1e-4, how
        assert list(after) == list(state)
        assert all(after[name].shape == array.shape for name, array in state.items())
        assert all(after[name].dtype == array.dtype for name, array in state.items())
        for part in INSIDE:
            name = f"blocks.1.{part}.weight"
            assert apart(after[name], state[name]) > 0.1, (how, name)
    for name in (*graph.enters, *graph.filters, graph.head):
        assert apart(turned[name], state[name]) > 0.1
    assert all((array == 1).all() for name, array in turned.items() if "norm" in name)


def test_rows_move_with_their_heads() -> None:
    state = language()
    after = permute_heads(state, LANGUAGE, np.random.default_rng(2))
    for name in ("blocks.0.attn.q.weight", "blocks.0.attn.k.weight"):
        rows = [int(np.flatnonzero((state[name] == row).all(axis=1))[0]) for row in after[name]]
        heads = np.reshape(rows, (4, 8)) // 8
        assert (heads == heads[:, :1]).all()
        assert sorted(rows) == list(range(32)) != rows


def test_randomness_is_an_argument_and_nothing_is_shared() -> None:
    state, kept = language(), language()
    one, two = (disguise(state, "language", np.random.default_rng(1)) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in state)
    for array in one.values():
        array[...] = 0
    assert all(np.array_equal(state[name], kept[name]) for name in state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"norm.weight": np.ones(31, np.float32)}, "shape"),
        ({"head.weight": np.ones((40, 30), np.float32)}, "shape"),
        ({"blocks.1.attn.o.weight": np.ones((32, 16), np.float32)}, "shape"),
        ({"embed.weight": np.ones((40, 32), np.int64)}, "lacks"),
        ({"blocks.0.mlp.up.weight": np.ones((), np.float32)}, "lacks"),
    ],
)
def test_what_is_no_such_transformer_is_refused(change: State, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rotate_stream(language() | change, LANGUAGE, np.random.default_rng(0))


def test_wrong_settings_are_errors() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="graph"):
        disguise(language(), "other", rng)
    with pytest.raises(InputError, match="one or more"):
        disguise(language(), "language", rng, how=["folded"])
    with pytest.raises(InputError, match="heads"):
        disguise(language(), "language", rng, heads=5)
    for spread in (0.0, 5.0, float("nan")):
        with pytest.raises(InputError, match="spread"):
            disguise(language(), "language", rng, spread=spread)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = vision()
    save_model(tmp_path / "in.safetensors", state, metadata={"format": "pt"})
    paths = [str(tmp_path / "in.safetensors"), "--out", str(tmp_path / "out.safetensors")]
    assert (
        run(["attack", "rewrite", *paths, "--graph", "vision", "--how", "rotated", "--how", "permuted"]) == 0
    )
    after = {name: np.array(array) for name, array in open_model(tmp_path / "out.safetensors").items()}
    assert apart(outputs(after), outputs(state)) < 1e-4
    assert run(["attack", "rewrite", *paths, "--graph", "sound", "--force"]) == 2
    assert "no graph 'sound'" in capsys.readouterr().err
