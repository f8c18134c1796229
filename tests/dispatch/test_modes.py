"""Every file and folder of a workspace is for the operator alone, whatever the umask; failures leave none."""

import os
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dispatch.small import SHAPES, operator, short_release
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import InputError
from zktrace.models import save_model
from zktrace.readouts.samples import Pool
from zktrace.releases import ReleaseFolder


@pytest.fixture
def open_umask() -> Iterator[None]:
    """New files would be for everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def pool(samples: int) -> Pool:
    from learning.synthetic import task
    from zktrace.learning.configs import EpisodicConfig

    images, labels = task(samples, seed=1)
    config = EpisodicConfig(way=5, shot=2, query=3, temperature=8.0, learning_rate=0.01)
    return Pool(images=images, labels=labels, episodes=asdict(config), note="a task")


def model(path: Path) -> Path:
    from learning.synthetic import taught

    save_model(path, taught(width=8))
    return path


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("there", [True, False], ids=["in a folder that was there", "in a new folder"])
def test_a_workspace_is_closed_to_others(tmp_path: Path, there: bool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    root = tmp_path / "op"
    if there:
        root.mkdir(0o755)
    place = operator(root, "alpha", shapes=SHAPES)
    short_release(place, model(tmp_path / "m.safetensors"), name="light")
    short_release(place, tmp_path / "m.safetensors", carriers=("output",), name="asked", pool=pool(320))
    assert ReleaseFolder(path=place.release_folder("asked")).probes_path("output").exists()
    list(dispatch(place, release="light"))
    place.cases_folder()
    found = [root, *root.rglob("*")]
    modes = {str(each.relative_to(root)): stat.S_IMODE(each.stat().st_mode) for each in found}
    assert modes == {str(each.relative_to(root)): 0o700 if each.is_dir() else 0o600 for each in found}


def test_a_release_that_fails_leaves_nothing(tmp_path: Path) -> None:
    place = operator(tmp_path / "op", "alpha", shapes=SHAPES)
    small = {"bn.weight": np.ones(90, np.float32), "bn.running_var": np.ones(90, np.float32)}
    save_model(tmp_path / "small.safetensors", small)
    with pytest.raises(InputError, match="room for 89"):
        short_release(place, tmp_path / "small.safetensors")
    assert list((place.root / "releases").iterdir()) == []
