"""A shared model is hashed once, and again whenever its file is no longer the one that was hashed."""

import os
from pathlib import Path

import numpy as np
import pytest

from zktrace.errors import Refused
from zktrace.models import ModelState, model_digest, save_model
from zktrace.releases import shared as room
from zktrace.releases.shared import SharedModel

ARRAYS = {"weight": np.arange(12, dtype=np.float32).reshape(3, 4)}
OTHER = {"weight": np.ones((3, 4), dtype=np.float32)}


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[ModelState]:
    """The states that were hashed."""
    found: list[ModelState] = []

    def digest(state: ModelState) -> bytes:
        found.append(state)
        return model_digest(state)

    monkeypatch.setattr(room, "model_digest", digest)
    return found


@pytest.fixture
def model(tmp_path: Path) -> SharedModel:
    path = tmp_path / "shared.safetensors"
    return SharedModel(path=path, digest=save_model(path, ARRAYS))


def test_it_is_hashed_once(model: SharedModel, hashed: list[ModelState]) -> None:
    assert model.checked() is model.checked() is model.found()
    assert len(hashed) == 1


def test_another_file_in_its_place_is_hashed_and_refused(
    model: SharedModel, hashed: list[ModelState]
) -> None:
    model.checked()
    save_model(model.path, OTHER, replace=True)
    for _ in range(2):
        with pytest.raises(Refused, match="not the shared model that the registry has on record"):
            model.checked()
    save_model(model.path, ARRAYS, replace=True)
    np.testing.assert_array_equal(model.checked()["weight"], ARRAYS["weight"])
    assert len(hashed) == 4


def test_a_file_that_was_written_to_is_hashed_again(model: SharedModel, hashed: list[ModelState]) -> None:
    model.checked()
    with model.path.open("r+b") as handle:
        handle.seek(-4, os.SEEK_END)
        handle.write(np.float32(99).tobytes())
    os.utime(model.path, ns=(1, 1))  # whatever the clock's step is
    with pytest.raises(Refused, match="not the shared model"):
        model.checked()
    assert len(hashed) == 2


def test_where_there_is_none_nothing_is_remembered(model: SharedModel) -> None:
    model.checked()
    model.path.unlink()
    with pytest.raises(Refused, match="cannot be read"):
        model.checked()
