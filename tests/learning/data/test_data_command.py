"""`zktrace data` as a user meets it, and what it loads."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from zktrace.cli.data import app
from zktrace.errors import Error, InputError, Refused
from zktrace.learning.data import Dataset, sheet

SOURCE = Path(__file__).parents[3] / "src" / "zktrace"


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The JSON object of a command."""
    app([*arguments, "--json"], standalone_mode=False)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["ok"] is True
    return found


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    records = np.random.default_rng(0).integers(0, 256, (120, 3073), dtype=np.uint8)
    records[:, 0] = np.arange(120) % 10
    folder = tmp_path / "cifar"
    folder.mkdir()
    (folder / "data_batch_1.bin").write_bytes(records.tobytes())
    return folder


def test_preview_draws_a_sheet_that_says_simulated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = ask(capsys, "preview", "--per-class", "2")
    assert facts["title"] == "Simulated CRPA interference"
    assert facts["samples"] == 12
    with Image.open(tmp_path / "gnss-sheet.png") as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.text["Title"] == "Simulated CRPA interference"  # type: ignore[attr-defined]
        assert picture.size[0] >= 700
        assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 200
    with pytest.raises(Refused, match="exists already"):
        app(["preview"], standalone_mode=False)
    before = (tmp_path / "gnss-sheet.png").read_bytes()
    ask(capsys, "preview", "--per-class", "2", "--force")
    assert (tmp_path / "gnss-sheet.png").read_bytes() == before
    ask(capsys, "preview", "--per-class", "2", "--force", "--seed", "1", "--setting", "A", "--receiver-shift")
    assert (tmp_path / "gnss-sheet.png").read_bytes() != before


def test_preview_of_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path, cifar: Path) -> None:
    out = tmp_path / "c.png"
    app(
        ["preview", "--dataset", "cifar10", "--folder", str(cifar), "--out", str(out), "--per-class", "3"],
        standalone_mode=False,
    )
    assert "CIFAR-10 (data_batch_1): 10 classes, 30 samples" in capsys.readouterr().out
    with Image.open(io.BytesIO(out.read_bytes())) as picture:
        picture.verify()


def test_describe_counts_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    facts = ask(capsys, "describe")
    assert facts["note"] == "simulated CRPA interference"
    split = facts["split"]
    assert np.sum(list(split.values()), axis=0).tolist() == [64655, 22936, 8136, 2886, 1024, 363]  # type: ignore[attr-defined]
    stations = facts["stations"]
    assert np.sum([each["counts"] for each in stations], axis=0).tolist() == split["train"]  # type: ignore[attr-defined,index]
    assert facts["formable_stations"] == [each["station"] for each in stations if each["formable"]]  # type: ignore[attr-defined]


def test_describe_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    app(["describe", "--alpha", "0.1", "--seed", "137"], standalone_mode=False)
    out = capsys.readouterr().out
    assert out.startswith("simulated CRPA interference\n")
    assert "no episode" in out
    assert out.rstrip().endswith("stations can form a 5-way 5-shot episode with 15 queries")


def test_describe_a_folder(capsys: pytest.CaptureFixture[str], cifar: Path) -> None:
    facts = ask(
        capsys,
        "describe",
        "--dataset",
        "cifar10",
        "--folder",
        str(cifar),
        "--stations",
        "2",
        "--queries",
        "1",
    )
    assert facts["samples"] == 120
    assert len(facts["stations"]) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        ("preview", "--dataset", "cifar10"),
        ("preview", "--setting", "C"),
        ("preview", "--jnr", "loud"),
        ("preview", "--out", "/nowhere/at/all.png"),
        ("describe", "--dataset", "recordings", "--folder", "/nowhere"),
        ("describe", "--alpha", "0"),
        ("describe", "--total", "6", "--stations", "10"),
    ],
)
def test_bad_requests_are_errors_of_ours(arguments: tuple[str, ...]) -> None:
    with pytest.raises(Error) as caught:
        app(list(arguments), standalone_mode=False)
    assert "\n" not in str(caught.value)


def test_a_sheet_of_recordings_shows_four_elements() -> None:
    images = np.linspace(0, 1, 4 * 4 * 32 * 32, dtype=np.float32).reshape(4, 4, 32, 32)
    dataset = Dataset(
        name="r", images=images, labels=np.array([0, 0, 2, 2]), class_names=("a", "b", "c"), note="recordings"
    )
    page = sheet.dataset_sheet(dataset, seed=0, per_class=5)
    assert [(name, len(tiles)) for name, tiles in page.rows] == [("a", 2), ("c", 2)]
    assert page.rows[0][1][0].pixels.shape == (130, 130, 3)
    with pytest.raises(InputError, match=r"1\.\.50"):
        sheet.dataset_sheet(dataset, seed=0, per_class=51)


def test_frequency_points_up_and_elements_stand_as_in_the_array() -> None:
    image = np.zeros((4, 32, 32), np.float32)
    image[0, 31, 0] = 1  # element 0 stands at (-x, -y): lower left; its top row is the highest frequency
    bright = np.argwhere(sheet.mosaic(image, times=1).sum(axis=2) == sheet.coloured(np.array([1.0])).sum())
    assert bright.tolist() == [[34, 0]]


def test_the_data_side_needs_no_torch() -> None:
    modules = [
        ".".join(("zktrace", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in sorted((SOURCE / "learning" / "data").rglob("*.py"))
        if path.stem != "__init__"
    ]
    code = f"import sys, {', '.join(modules)}; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not {"torch", "PIL", "scipy"} & {name.split(".")[0] for name in loaded.split()}


def test_naming_the_commands_loads_no_arrays() -> None:
    code = "import sys, zktrace.cli.data; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "numpy" not in loaded.split()
