"""`zktrace trace` and `zktrace judge` on a workspace with real files: what they print and how they end."""

import json
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracing.small import public_key
from zktrace.carriers.weight import WeightWriter
from zktrace.cli.app import run
from zktrace.codes import unpack
from zktrace.dispatch.releases import make_release
from zktrace.models import ModelState, save_model
from zktrace.registry.custody import CodeShape
from zktrace.registry.enrolling import enrol
from zktrace.registry.export import write_export
from zktrace.registry.records import Dispatch
from zktrace.registry.workspace import Workspace

LAYERS = (200, 200, 200)
LENGTH = 256
STATIONS = ("alpha", "bravo", "carol", "delta")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, a shared model, a copy for every station, and an unmarked model."""
    root = tmp_path_factory.mktemp("case")
    shape = CodeShape(carrier="weight", length=LENGTH, colluders=2)
    home = Workspace.create(root / "home", title="test", budget=Fraction(1, 100), carriers=(shape,))
    for i, name in enumerate(STATIONS):
        enrol(home.registry, home.custody, station=name, public=public_key(i))
    rng = np.random.default_rng(0)
    shared = {}
    for i, size in enumerate(LAYERS):
        shared[f"bn{i}.weight"] = (1 + 0.1 * rng.standard_normal(size)).astype(np.float32)
        shared[f"bn{i}.running_var"] = np.ones(size, dtype=np.float32)
    save_model(root / "shared.safetensors", shared)
    make_release(home, root / "shared.safetensors", carriers=("weight",), name="r1")
    writer = WeightWriter(seed=home.custody.direction_seed("weight", "r1"), length=LENGTH, layers=LAYERS)
    state = ModelState.from_arrays(shared)
    for row, name in enumerate(STATIONS):
        word = unpack(home.custody.code("weight").rows([row]), LENGTH)[0]
        save_model(root / f"{name}.safetensors", writer.write(state, word).state)
        home.registry.add(Dispatch(station=name, release="r1", copy=bytes(32)))
    save_model(root / "unmarked.safetensors", _noisy(shared))
    return root


def _noisy(shared: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    return {
        name: (array + 0.05 * rng.standard_normal(array.shape)).astype(np.float32)
        if name.endswith(".weight")
        else array
        for name, array in shared.items()
    }


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "root"
    shutil.copytree(made, root)
    monkeypatch.chdir(root / "home")
    return root


def spoken(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def facts_of(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_leaked_copy_is_named_and_the_judge_agrees(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "../bravo.safetensors", "--out", "case.zkt.json"]) == 0
    text = spoken(capsys)
    assert text.startswith("CERTIFIED: the suspect carries the row of bravo.")
    assert "at most 1/1000 (0.001)" in text
    assert "It does not prove" in text
    assert stat.S_IMODE(Path("case.zkt.json").stat().st_mode) == 0o600
    home = Workspace.find()
    head = home.registry.head().to_text()
    assert f"head      {head}" in text
    assert run(["judge", "case.zkt.json", "--head", head]) == 0
    text = spoken(capsys)
    for number in range(1, 10):
        assert f"({number}) " in text
    assert "not checked: that the readouts are the suspect's" in text
    assert "upheld: certified-attribute, bravo" in text
    write_export(home.registry, here / "export")
    arguments = ["judge", "case.zkt.json", "--head", head, "--suspect", "../bravo.safetensors"]
    assert run([*arguments, "--registry", str(here / "export"), "--json"]) == 0
    facts = facts_of(capsys)
    assert (facts["upheld"], facts["named"], facts["recipients"]) == (True, ["bravo"], 4)
    checked = " ".join(fact for step in facts["steps"] for fact in step["checked"])  # type: ignore[attr-defined]
    assert "256 values read again" in checked
    assert "N = 4 recounted" in checked
    assert "bravo was sent a copy of r1" in checked


def test_an_averaged_and_quantised_copy_names_both(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from zktrace.models import open_model

    first, second = (open_model(here / f"{name}.safetensors") for name in ("alpha", "delta"))
    mixed = {name: ((first[name] + second[name]) / 2).astype(np.float16) for name in first}
    save_model(here / "mixed.safetensors", mixed)
    assert run(["trace", "../mixed.safetensors", "--json"]) == 0
    facts = facts_of(capsys)
    assert {each["station"] for each in facts["named"]} == {"alpha", "delta"}  # type: ignore[attr-defined]
    path = Path(str(facts["evidence"]))
    assert path.parent == here / "home" / "cases"
    arguments = ["judge", str(path), "--head", str(facts["head"]), "--suspect", "../mixed.safetensors"]
    assert run(arguments) == 0


def test_leads_and_no_evidence_have_exit_codes_of_their_own(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", "../bravo.safetensors", "--uncertified", "--json"]) == 3
    facts = facts_of(capsys)
    assert facts["verdict"] == "uncertified-lead"
    assert facts["named"] == []
    assert facts["leads"][0]["station"] == "bravo"  # type: ignore[index]
    assert facts["budget"] == "0"
    assert run(["judge", str(facts["evidence"]), "--head", str(facts["head"])]) == 0
    assert "nobody is accused" in spoken(capsys)
    assert run(["trace", "../unmarked.safetensors"]) == 4
    assert spoken(capsys).startswith("NO EVIDENCE")
    assert run(["trace", "../shared.safetensors"]) == 4


def test_a_forged_file_is_rejected_with_its_step(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "../bravo.safetensors", "--json"]) == 0
    facts = facts_of(capsys)
    head = str(facts["head"])
    tree = json.loads(Path(str(facts["evidence"])).read_text())
    row = Workspace.find().custody.row("weight", 2).hex()
    tree["accused"][0]["rows"][0]["row"] = row
    Path("forged.json").write_text(json.dumps(tree, sort_keys=True, separators=(",", ":")))
    assert run(["judge", "forged.json", "--head", head, "--json"]) == 1
    answer = facts_of(capsys)
    assert (answer["ok"], answer["error"], answer["step"]) == (False, "EvidenceRejected", 3)
    Path("forged.json").write_text("{}")
    assert run(["judge", "forged.json", "--head", head]) == 2
    assert run(["judge", str(facts["evidence"]), "--head", "zkt-head-v1:1:00"]) == 2
    assert run(["judge", "missing.json", "--head", head]) == 2
    Path("policy.toml").write_text("min_length = 1024\n")
    assert run(["judge", str(facts["evidence"]), "--head", head, "--policy", "policy.toml"]) == 1
    assert "step 8, budget and policy" in capsys.readouterr().err
    Path("policy.toml").write_text("min_lengths = 1\n")
    assert run(["judge", str(facts["evidence"]), "--head", head, "--policy", "policy.toml"]) == 2


def test_what_goes_wrong_early_costs_no_budget(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there.json").write_text("")
    (here / "broken.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    wrong = (
        ["../bravo.safetensors", "--out", "there.json"],
        ["../bravo.safetensors", "--out", "nowhere/case.json"],
        ["../broken.safetensors"],
        ["../missing.safetensors"],
        ["../bravo.safetensors", "--carrier", "both"],
        ["../bravo.safetensors", "--carrier", "smell"],
        ["../bravo.safetensors", "--release", "r9"],
        ["../bravo.safetensors", "--budget", "0"],
        ["../bravo.safetensors", "--budget", "1/2"],
        ["../bravo.safetensors", "--workspace", str(here)],
    )
    for arguments in wrong:
        assert run(["trace", *arguments]) == 2, arguments
        assert capsys.readouterr().err.startswith("error: ")
    assert Workspace.find().registry.ledger().spent == 0
    assert Path("there.json").read_text() == ""


def test_both_carriers_are_read_where_torch_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    from zktrace.dispatch.releases import Pool
    from zktrace.learning.resnet import ResNet
    from zktrace.learning.states import state_of

    shapes = [CodeShape(carrier=each, length=64, colluders=2) for each in ("weight", "feature")]
    home = Workspace.create(tmp_path / "home", title="test", carriers=shapes)
    enrol(home.registry, home.custody, station="alpha", public=public_key(0))
    rng = np.random.default_rng(0)
    shared = state_of(ResNet(depth=18, channels=1, width=4, rng=rng).eval())
    save_model(tmp_path / "shared.safetensors", shared)
    images = rng.standard_normal((80, 1, 16, 16)).astype(np.float32)
    pool = Pool(images=images, labels=np.arange(80) % 4, episodes={}, note="noise")
    make_release(home, tmp_path / "shared.safetensors", carriers=("weight", "feature"), name="r1", pool=pool)
    other = state_of(ResNet(depth=18, channels=1, width=4, rng=rng).eval())
    save_model(tmp_path / "other.safetensors", other)
    arguments = [
        "trace",
        str(tmp_path / "other.safetensors"),
        "--workspace",
        str(tmp_path / "home"),
        "--json",
    ]
    for more, expected in (
        (["--carrier", "both"], {"weight", "feature"}),
        ([], {"weight", "feature"}),
        (["--carrier", "feature"], {"feature"}),
    ):
        assert run([*arguments, *more]) == 4
        assert set(facts_of(capsys)["scores"]) == expected  # type: ignore[call-overload]


def test_tracing_weights_and_judging_them_need_no_torch(here: Path) -> None:
    code = (
        "import sys; from zktrace.cli.app import run\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError(name, name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "assert run(['trace', '../carol.safetensors', '--out', 'c.json']) == 0\n"
        "import json; head = json.load(open('c.json'))['head']\n"
        "assert run(['judge', 'c.json', '--head', head, '--suspect', '../carol.safetensors']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    loaded = "import sys; import zktrace.judge; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    ).stdout
    assert not {"torch", "sqlalchemy", "zktrace.tracing", "zktrace.registry.stores"} & set(modules.split())
