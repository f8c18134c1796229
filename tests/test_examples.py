"""Every example runs as it stands, in an interpreter of its own, and says what it should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import zktrace

FOLDER = Path(__file__).parents[1] / "examples"


def said(name: str, *arguments: str, code: int = 0) -> str:
    ran = subprocess.run(
        [sys.executable, FOLDER / name, *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran.stderr + ran.stdout
    return ran.stdout


def test_every_example_is_tested() -> None:
    tested = set(re.findall(r'said\("(\w+\.py)"', Path(__file__).read_text()))
    assert tested == {path.name for path in FOLDER.glob("*.py")}


def test_the_life_cycle_is_25_lines_and_names_the_leaker() -> None:
    lines = said("life_cycle.py").splitlines()
    assert lines[0] == "certified-attribute: bravo"
    assert lines[1].startswith("upheld: bravo; ")
    text = (FOLDER / "life_cycle.py").read_text().splitlines()
    code = [line for line in text if line.strip() and not line.startswith(("import", "from", '"""', "#"))]
    assert len(code) <= 25


def test_a_judge_upholds_and_rejects(tmp_path: Path) -> None:
    import numpy as np

    from zktrace.models import save_model

    rng = np.random.default_rng(0)
    model = {name: rng.normal(size=(128, 256)).astype(np.float32) for name in ("first", "second")}
    save_model(tmp_path / "shared.safetensors", model)
    home = zktrace.Workspace.create(tmp_path / "op", title="a case")
    for name in ("alpha", "bravo"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    release = home.release(tmp_path / "shared.safetensors")
    for name in ("alpha", "bravo"):
        home.dispatch(name, release).save(tmp_path / f"{name}.safetensors")
    case = home.trace(tmp_path / "alpha.safetensors")
    assert case.path is not None
    given, shared = [str(case.path), home.head.to_text()], str(tmp_path / "shared.safetensors")
    shown = said("judge_case.py", *given, str(tmp_path / "alpha.safetensors"), shared)
    assert shown.splitlines()[-1] == "upheld: certified-attribute, alpha"
    assert "values of the suspect read again" in shown
    assert "step 5" in said("judge_case.py", *given, str(tmp_path / "bravo.safetensors"), shared, code=1)


def test_an_attack_of_ones_own() -> None:
    lines = said("own_attack.py").splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("named ['charlie']")
    scores = [float(re.findall(r"reads (-?[0-9.]+)", line)[0]) for line in lines]
    assert scores[0] > 10 > scores[-1]


def test_a_carrier_of_ones_own() -> None:
    assert said("own_carrier.py").splitlines() == ["certified-attribute: bravo", "upheld: ('bravo',)"]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py")))
def test_an_example_is_clean(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text.startswith('"""')
    assert max(map(len, text.splitlines())) <= 120
