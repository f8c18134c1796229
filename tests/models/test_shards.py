"""Models in several files: an index or a folder, bounded, complete, and never outside of their folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forge import EXAMPLE, npz, simple_checkpoint
from models.gguf_forge import gguf
from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models import Limits, ModelState, model_digest, open_model, save_model

PARTS = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def refusal(path: Path, kind: type[Error] = MalformedModel, limits: Limits | None = None) -> str:
    with pytest.raises(kind) as caught:
        open_model(path, limits or Limits())
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)


def index(places: Mapping[str, Any]) -> str:
    return json.dumps({"metadata": {"total_size": 7}, "weight_map": places}, indent=2)


def halves() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    names = sorted(EXAMPLE)
    return {name: EXAMPLE[name] for name in names[::2]}, {name: EXAMPLE[name] for name in names[1::2]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two shards with its index, among files that are none of it."""
    places = {}
    for part, arrays in zip(PARTS, halves(), strict=True):
        save_model(tmp_path / part, arrays)
        places |= dict.fromkeys(arrays, part)
    (tmp_path / INDEX).write_text(index(places))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "training_args.bin").write_bytes(b"\x80\x04K\x00.")
    return tmp_path


def test_an_index_its_folder_and_a_folder_without_index_are_the_model(folder: Path) -> None:
    whole = ModelState.from_arrays(EXAMPLE)
    assert open_model(folder / INDEX) == whole
    assert open_model(folder) == whole
    (folder / INDEX).unlink()
    assert open_model(folder) == whole
    assert model_digest(open_model(folder)) == model_digest(whole)


def test_an_index_on_one_line_is_read(folder: Path) -> None:
    places = json.loads((folder / INDEX).read_text())["weight_map"]
    (folder / INDEX).write_text(json.dumps({"weight_map": places}, separators=(",", ":")))
    assert open_model(folder / INDEX) == ModelState.from_arrays(EXAMPLE)


def test_shards_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    places, whole = {}, {name: array for name, array in EXAMPLE.items() if array.size}
    for at, half in enumerate(halves()):
        arrays = {name: array for name, array in half.items() if name in whole}
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        torch.save(tensors, tmp_path / f"pytorch_model-{at}.bin")
        places |= dict.fromkeys(arrays, f"pytorch_model-{at}.bin")
    assert "several models" in refusal(tmp_path, Refused)
    (tmp_path / "pytorch_model.bin.index.json").write_text(index(places))
    assert open_model(tmp_path) == ModelState.from_arrays(whole)
    assert open_model(tmp_path / "pytorch_model.bin.index.json") == ModelState.from_arrays(whole)


def test_a_folder_with_one_model_of_any_kind(tmp_path: Path) -> None:
    kinds = {"a.npz": npz(EXAMPLE), "b.pt": simple_checkpoint(), "c.gguf": gguf({"w": (0, (1,), bytes(4))})}
    for name, data in kinds.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(data)
        assert open_model(tmp_path / name) == open_model(tmp_path / name / name)


def test_parts_of_a_split_gguf_are_one_model(tmp_path: Path) -> None:
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(gguf({"a": (8, (32,), bytes(34))}))
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(gguf({"b": (0, (1,), bytes(4))}))
    assert list(open_model(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize(
    "file", ["../x", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "a\nb", "x\0y", "\ud800", "a" * 256]
)
def test_an_index_names_files_beside_it_only(folder: Path, file: str) -> None:
    save_model(folder.parent / "x", EXAMPLE, replace=True)
    (folder / INDEX).write_text(index({"w": file}))
    assert "no plain name" in refusal(folder / INDEX)
    assert "no plain name" in refusal(folder)


def test_a_shard_that_is_a_link_is_refused(folder: Path) -> None:
    outside = folder.parent / "outside.safetensors"
    (folder / PARTS[0]).rename(outside)
    (folder / PARTS[0]).symlink_to(outside)
    assert "is a link" in refusal(folder, Refused)
    assert "is a link" in refusal(folder / INDEX, Refused)
    (folder / INDEX).rename(folder.parent / "index.json")
    (folder / INDEX).symlink_to(folder.parent / "index.json")
    assert "is a link" in refusal(folder, Refused)
    (folder / INDEX).unlink()
    assert "is a link" in refusal(folder, Refused)


def test_an_index_and_its_shards_must_agree(folder: Path) -> None:
    places = json.loads((folder / INDEX).read_text())["weight_map"]
    name = min(places)
    (folder / INDEX).write_text(index(places | {"more": PARTS[0]}))
    assert "does not hold tensor 'more'" in refusal(folder)
    (folder / INDEX).write_text(index({each: file for each, file in places.items() if each != name}))
    assert f"tensor '{name}'" in refusal(folder)
    (folder / INDEX).write_text(index(dict.fromkeys(places, PARTS[0])))
    assert "does not hold" in refusal(folder)
    (folder / INDEX).write_text(index(places | {"w": "gone.safetensors"}))
    assert "gone.safetensors: cannot be read" in refusal(folder, Refused)


def test_a_name_in_two_shards_is_refused(folder: Path) -> None:
    (folder / INDEX).unlink()
    save_model(folder / "third.safetensors", {min(EXAMPLE): np.zeros(1)})
    assert "same name" in refusal(folder)


def test_a_shard_is_not_an_index(folder: Path) -> None:
    (folder / "other.json").write_text(index({"w": INDEX}))
    assert "not a model file" in refusal(folder / "other.json")
    (folder / "self.json").write_text(index({"w": "self.json"}))
    assert "not a model file" in refusal(folder / "self.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"weight_map": {"w": 1}}', "seems to be JSON text"),
        ('{"weight_map": []}', "seems to be JSON text"),
        ('{"format": "zkt-evidence"}', "evidence"),
        ('{"weight_map": {}}', "no tensors"),
        ('{"weight_map": {"w": "a", "w": "a"}}', "twice"),
        ('{"weight_map": {"": "a"}}', "empty name"),
        ('{"weight_map": {"w": "a"}', "not a JSON object"),
        ("{" + "[" * 100_000, "not a JSON object"),
        ("{}", "seems to be JSON text"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "m.json").write_text(content)
    assert reason in refusal(tmp_path / "m.json")


def test_folders_without_a_model_or_with_several_are_refused(tmp_path: Path) -> None:
    assert "is a directory without model files" in refusal(tmp_path, Refused)
    (tmp_path / "a.npz").write_bytes(npz(EXAMPLE))
    (tmp_path / "b.npz").write_bytes(npz(EXAMPLE))
    assert "several models ('a.npz', 'b.npz')" in refusal(tmp_path, Refused)


def test_the_limits_are_those_of_the_whole_model(folder: Path) -> None:
    size = sum((folder / part).stat().st_size for part in PARTS)
    open_model(folder, Limits(max_file_bytes=size))
    assert "the limit is" in refusal(folder, LimitExceeded, Limits(max_file_bytes=size - 1))
    assert "7 tensors" in refusal(folder, LimitExceeded, Limits(max_tensors=6))
    total = ModelState.from_arrays(EXAMPLE).nbytes
    assert f"{total} bytes of tensors" in refusal(folder, LimitExceeded, Limits(max_total_bytes=total - 1))
    assert "2 shards" in refusal(folder, LimitExceeded, Limits(max_shards=1))
    assert "JSON text" in refusal(folder, LimitExceeded, Limits(max_header_bytes=200))
    (folder / INDEX).unlink()
    assert "2 shards" in refusal(folder, LimitExceeded, Limits(max_shards=1))
    assert "7 tensors" in refusal(folder, LimitExceeded, Limits(max_tensors=6))


def test_files_that_are_loaded_whole_have_a_bound_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(npz(EXAMPLE))
    assert "save it as safetensors" in refusal(tmp_path / "m", LimitExceeded, Limits(max_loaded_bytes=100))
    save_model(tmp_path / "n", EXAMPLE)
    open_model(tmp_path / "n", Limits(max_loaded_bytes=100))


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.sampled_from([*PARTS, "../" + PARTS[0]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(
    value=st.dictionaries(st.sampled_from(["weight_map", "metadata", "x"]), _VALUES), cut=st.integers(0, 99)
)
def test_any_index_opens_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], cut: int
) -> None:
    path = tmp_path_factory.mktemp("any") / INDEX
    text = json.dumps(value)
    path.write_text(text[: max(1, len(text) - cut)] if cut % 2 else text)
    with pytest.raises(Error) as caught:
        open_model(path)
    assert str(caught.value).isprintable()
