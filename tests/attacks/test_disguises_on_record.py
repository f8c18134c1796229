"""Copies of a ResNet in disguise, also changed afterwards, from release to judge on the spread carrier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

import zktrace
from attacks.lived import lived
from zktrace.attacks.fold import fold
from zktrace.attacks.rewrite import permute, rescale
from zktrace.court import Policy

State = dict[str, NDArray[Any]]
LEAKER = "bravo"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> zktrace.Workspace:
    made = zktrace.Workspace.create(tmp_path_factory.mktemp("w") / "op", title="a federation", budget="1/2")
    for name in ("alpha", LEAKER, "charlie"):
        made.enrol(name, zktrace.Credential.new(name).request(made.setup))
    made.release(lived(width=16))
    return made


def eight_bits(state: State) -> State:
    steps = {name: np.ptp(each) / 255 or 1.0 for name, each in state.items() if each.dtype.kind == "f"}
    return {
        name: (np.round(each / steps[name]) * steps[name]).astype(np.float32) if name in steps else each
        for name, each in state.items()
    }


def renamed(state: State) -> State:
    return {f"backbone.{name}": each for name, each in state.items()}


def rewritten(state: State) -> State:
    rng = np.random.default_rng(3)
    return permute(rescale(state, rng, spread=0.5, norms=True), rng)


DISGUISES: dict[str, Callable[[State], State]] = {
    "folded": fold,
    "folded, 8 bits": lambda state: eight_bits(fold(state)),
    "folded, renamed": lambda state: renamed(fold(state)),
    "rewritten": rewritten,
    "rewritten, 8 bits": lambda state: eight_bits(rewritten(state)),
    "rewritten, folded": lambda state: fold(rewritten(state)),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguised_copy_is_traced_and_judged(
    home: zktrace.Workspace, disguise: str, tmp_path: Path
) -> None:
    copy = home.dispatch(LEAKER)
    suspect = DISGUISES[disguise]({name: np.array(each) for name, each in copy.arrays.items()})
    case = home.trace(suspect, budget="1/1000000")
    assert case.named == (LEAKER,)
    found = zktrace.judge(
        case.evidence,
        head=home.head,
        suspect=suspect,
        shared=home.opened().shared,
        policy=Policy(require_suspect=True, require_shared=True, require_readout=True),
    )
    assert found.named == (LEAKER,)
