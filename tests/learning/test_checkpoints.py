"""Checkpoints: what goes in comes out, other files are refused, leftovers are swept."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from zktrace.errors import InputError, MalformedModel, Refused
from zktrace.learning.checkpoints import (
    Checkpoint,
    load_checkpoint,
    prefixed,
    restore_rng,
    rng_state,
    save_checkpoint,
)
from zktrace.models import save_model

ARRAYS = {"a.b": np.arange(3, dtype=np.float32), "n": np.array(7)}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    saved = Checkpoint(kind="test", arrays=prefixed("model", ARRAYS), facts={"epoch": 3, "big": 1 << 127})
    save_checkpoint(path, saved)
    found = load_checkpoint(path, kind="test")
    assert found.facts == {"epoch": 3, "big": 1 << 127}
    assert found.group("model").keys() == ARRAYS.keys()
    assert all((found.group("model")[name] == ARRAYS[name]).all() for name in ARRAYS)
    assert found.group("mod") == {}
    assert [each.name for each in tmp_path.iterdir()] == ["run.safetensors"]


def test_the_file_is_plain_safetensors_with_a_json_record(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, Checkpoint(kind="test", arrays=ARRAYS, facts={"epoch": 3}))
    with safe_open(path, framework="numpy") as file:
        record = json.loads(file.metadata()["zktrace"])
    assert record == {"format": "zkt-checkpoint-v1", "kind": "test", "facts": {"epoch": 3}}


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(path, ARRAYS)
    with pytest.raises(MalformedModel, match="not a checkpoint"):
        load_checkpoint(path, kind="test")
    for text in ("not json", "[1]", '{"format": "zkt-checkpoint-v2", "facts": {}}', "{}"):
        save_model(path, ARRAYS, metadata={"zktrace": text}, replace=True)
        with pytest.raises(MalformedModel, match="not a checkpoint"):
            load_checkpoint(path, kind="test")
    save_checkpoint(path, Checkpoint(kind="other", arrays=ARRAYS, facts={}))
    with pytest.raises(InputError, match="a checkpoint of 'other', not of 'test'"):
        load_checkpoint(path, kind="test")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MalformedModel):
        load_checkpoint(path, kind="other")
    with pytest.raises(Refused):
        load_checkpoint(tmp_path / "absent", kind="test")


def test_a_generator_goes_on_where_it_was() -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(2)
    rng.standard_normal(5, dtype=np.float32)
    restore_rng(other, json.loads(json.dumps(rng_state(rng))))
    assert (rng.integers(0, 100, 9) == other.integers(0, 100, 9)).all()
    with pytest.raises(InputError, match=r"PCG64 generators .* not MT19937"):
        rng_state(np.random.Generator(np.random.MT19937(1)))
    for broken in ({}, {"bit_generator": "PCG64"}, {"bit_generator": "PCG64", "state": {"state": "x"}}):
        with pytest.raises(MalformedModel, match="cannot be restored"):
            restore_rng(rng, broken)
