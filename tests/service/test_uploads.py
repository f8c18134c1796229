"""What was uploaded is opened by a child process alone, whatever kind of file it is."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from models import gguf_forge
from service.small import House, arrays, house
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.models import open as opening
from zktrace.service.jobs import JobRow


def as_npz(state: ModelState, path: Path) -> None:
    np.savez(path, **dict(state))


def as_onnx(state: ModelState, path: Path) -> None:
    tensors = [numpy_helper.from_array(np.array(value), name) for name, value in state.items()]
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], tensors)), path)


def as_gguf(state: ModelState, path: Path) -> None:
    floats = {name: (0, value.shape, value.tobytes()) for name, value in state.items()}
    path.write_bytes(gguf_forge.gguf(floats))


def as_torch(state: ModelState, path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({name: torch.tensor(np.array(value)) for name, value in state.items()}, path)


def as_safetensors(state: ModelState, path: Path) -> None:
    save_model(path, state)


KINDS = {"npz": as_npz, "onnx": as_onnx, "gguf": as_gguf, "pt": as_torch, "safetensors": as_safetensors}


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def traced(made: House, path: Path, monkeypatch: pytest.MonkeyPatch) -> JobRow:
    """From the upload to the verdict, in a process that reads nothing but what a child wrote."""
    client, uploads = made.account("operator"), made.home.root / "service" / "uploads"
    answer = client.post("/api/v1/investigations", params={"name": path.name}, content=path.read_bytes())
    (kept,) = uploads.iterdir()
    known = opening._mapped

    def mapped(place: Path, limit: int) -> object:
        assert place.parent != uploads, "the upload was opened in this process"
        return known(place, limit)

    monkeypatch.setattr(opening, "_mapped", mapped)
    made.work()
    client.post(f"/api/v1/jobs/{answer.json()['id']}/confirm")
    (done,) = made.work()
    assert list(uploads.iterdir()) == [kept]  # what the child wrote has gone with it
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_a_suspect_of_every_kind_comes_to_its_verdict(
    small: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    copy, path = open_model(small.home.dispatch("bravo", "r1").path), tmp_path / f"found.{kind}"
    writer: Callable[[ModelState, Path], None] = KINDS[kind]
    writer(copy, path)
    done = traced(small, path, monkeypatch)
    assert done.state == "done", done.error
    assert done.result["named"] == ["bravo"]
    assert done.result["suspect"] == model_digest(copy).hex()
    report = (small.home.root / "service" / "reports" / f"case-{done.result['place']}.html").read_text()
    assert f"--suspect found.{kind}" in report
    assert str(small.home.root / "service" / "uploads") not in report


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_model_of_every_kind_is_put_on_record(small: House, tmp_path: Path, kind: str) -> None:
    path, client = tmp_path / f"shared.{kind}", small.account("operator")
    KINDS[kind](ModelState.from_arrays(arrays(5)), path)
    client.post("/api/v1/releases", params={"name": "r2"}, content=path.read_bytes())
    (done,) = small.work()
    assert done.state == "done", done.error
    assert done.result["model"] == model_digest(open_model(path)).hex()
    assert list((small.home.root / "service" / "uploads").iterdir()) == []


def test_an_upload_that_names_other_files_gets_none_of_them(small: House, tmp_path: Path) -> None:
    """Two uploads, of which one is an index that names the other: neither that nor a secret is read."""
    client, uploads = small.account("operator"), small.home.root / "service" / "uploads"
    save_model(tmp_path / "m.safetensors", arrays())
    client.post("/api/v1/investigations", content=(tmp_path / "m.safetensors").read_bytes())
    (other,) = uploads.iterdir()
    index = {"metadata": {}, "weight_map": dict.fromkeys(arrays(), other.name)}
    asked = client.post("/api/v1/investigations", content=json.dumps(index).encode()).json()["id"]
    small.work()
    found = small.desk.jobs.find(asked)
    assert found.state == "failed"
    assert (
        found.error
        == "the uploaded file: seems to be the index of a model in several files; save it in one file"
    )
