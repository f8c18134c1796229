"""Copies are read back before they are handed out: what nobody could trace stays here."""

from pathlib import Path

import numpy as np
import pytest

from dispatch.small import SHAPES, model_file, operator, short_release
from zktrace.cli.app import run
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import Refused
from zktrace.marking.settings import CopySettings
from zktrace.models import open_model, save_model
from zktrace.registry.workspace import Home


@pytest.fixture
def place(tmp_path: Path) -> Home:
    made = operator(tmp_path / "op", "alpha", "beta", "gamma", shapes=SHAPES[:1])
    short_release(made, model_file(tmp_path / "model.safetensors"))
    return made


def test_an_ordinary_copy_is_strong_enough(place: Home) -> None:
    assert [copy.weak for copy in dispatch(place)] == [(), (), ()]


def test_a_copy_that_would_not_be_named_is_not_handed_out(tmp_path: Path) -> None:
    """Scales in half precision swallow a mark that is far below their grid."""
    made = operator(tmp_path / "op", "alpha", "beta", shapes=SHAPES[:1])
    coarse = {
        name: value.astype(np.float16)
        for name, value in open_model(model_file(tmp_path / "m.safetensors")).items()
    }
    save_model(tmp_path / "coarse.safetensors", coarse)
    short_release(made, tmp_path / "coarse.safetensors")
    head = made.registry.head()
    with pytest.raises(Refused, match=r"alpha: its copy would not be named.*make marks stronger"):
        list(dispatch(made, settings=CopySettings(share=1e-5)))
    assert made.registry.head() == head
    assert not made.copy_path("r1", "alpha").exists()
    assert [copy.station for copy in dispatch(made)] == ["alpha", "beta"]


def test_the_command_says_so(
    place: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place.root)
    assert run(["dispatch", "--all", "--share", "1e-9"]) == 2
    assert "would not be named if it leaked" in capsys.readouterr().err
    assert run(["dispatch", "--all"]) == 0
