"""`zktrace trace` and `zktrace judge` on a workspace with real files: what they print and how they end."""

import html
import json
import os
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracing.small import public_key, request
from zktrace.cli.app import run
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import Refused
from zktrace.models import open_model, save_model
from zktrace.primitives import files
from zktrace.readouts.samples import Pool
from zktrace.registry.custody import CodeShape
from zktrace.registry.export import write_export
from zktrace.registry.workspace import Home
from zktrace.releases import make_release

LAYERS = (200, 200, 200)
LENGTH = 256
STATIONS = ("alpha", "bravo", "carol", "delta")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, a shared model, a copy for every station, and an unmarked model."""
    root = tmp_path_factory.mktemp("case")
    shape = CodeShape(carrier="weight", colluders=2)
    home = Home.create(root / "home", title="test", budget=Fraction(1, 100), carriers=(shape,))
    for i, name in enumerate(STATIONS):
        home.enrol(name, request(i, home.offer))
    rng = np.random.default_rng(0)
    shared = {}
    for i, size in enumerate(LAYERS):
        shared[f"bn{i}.weight"] = (1 + 0.1 * rng.standard_normal(size)).astype(np.float32)
        shared[f"bn{i}.running_var"] = np.ones(size, dtype=np.float32)
    save_model(root / "shared.safetensors", shared)
    lengths = {"weight": LENGTH}
    make_release(home, root / "shared.safetensors", carriers=("weight",), name="r1", lengths=lengths)
    for copy in dispatch(home):
        shutil.copy(copy.path, root / f"{copy.station}.safetensors")
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
    before = Home.find().registry.head().to_text()
    assert run(["trace", "../bravo.safetensors", "--out", "case.zkt.json"]) == 0
    text = spoken(capsys)
    assert text.startswith("CERTIFIED: bravo's copy.\n")
    assert "at most 1/1000 (0.001)" in " ".join(text.split())
    assert "It does not prove" in text
    assert stat.S_IMODE(Path("case.zkt.json").stat().st_mode) == 0o600
    home = Home.find()
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
    assert "256 values of the suspect read again" in checked
    assert "N = 4 recounted" in checked
    assert "bravo was sent a copy of r1" in checked
    more = ["--shared", "../shared.safetensors", "--before", before, "--registry", str(here / "export")]
    assert run([*arguments, *more]) == 0
    text = spoken(capsys)
    assert "256 values of the shared model read again" in text
    assert "under the earlier head of 10 entries" in text
    assert run([*arguments, "--shared", "../bravo.safetensors"]) == 1


def test_an_averaged_and_quantised_copy_names_both(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert run(["trace", "../unmarked.safetensors"]) == 4
    assert spoken(capsys).startswith("NO EVIDENCE")
    assert run(["trace", "../shared.safetensors"]) == 4
    spoken(capsys)
    assert run(["trace", "../bravo.safetensors", "--uncertified", "--yes", "--json"]) == 3
    facts = facts_of(capsys)
    assert facts["verdict"] == "uncertified-lead"
    assert facts["named"] == []
    assert facts["leads"] is None
    assert facts["budget"] == "0"
    assert run(["judge", str(facts["evidence"]), "--head", str(facts["head"])]) == 0
    assert "nobody is accused" in spoken(capsys)


def test_a_forged_file_is_rejected_with_its_step(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "../bravo.safetensors", "--json"]) == 0
    facts = facts_of(capsys)
    head = str(facts["head"])
    tree = json.loads(Path(str(facts["evidence"])).read_text())
    tree["accused"][0]["rows"][0]["opening"]["seed"] = "00" * 32
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
    Path("dangling.json").symlink_to("nowhere/at/all.json")
    (here / "broken.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    wrong = (
        ["../bravo.safetensors", "--out", "there.json"],
        ["../bravo.safetensors", "--out", "nowhere/case.json"],
        ["../bravo.safetensors", "--out", "dangling.json"],
        ["../bravo.safetensors", "--out", "copies", "--force"],
        ["../bravo.safetensors", "--out", "../bravo.safetensors", "--force"],
        ["../bravo.safetensors", "--report", "there.json"],
        ["../bravo.safetensors", "--report", "dangling.json"],
        ["../bravo.safetensors", "--report", "nowhere/case.html"],
        ["../bravo.safetensors", "--report", "x", "--out", "./x"],
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
    assert not Home.find().registry.ledger().investigations
    assert Path("there.json").read_text() == ""


def test_what_the_workspace_keeps_is_not_replaced_even_by_force(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "link").symlink_to("home/releases")
    Path("cases").mkdir(exist_ok=True)
    Path("cases/case-1.zkt.json").write_text("evidence")
    kept = ("registry.db", "zktrace.toml", "secrets/code.key", "secrets/new", "cases/case-1.zkt.json")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for path in (*kept, "registry.db-wal", "../home/registry.db", "../link/r1/shared.safetensors"):
        for option in ("--out", "--report"):
            assert run(["trace", "../bravo.safetensors", option, path, "--force"]) == 2, path
            assert "not even --force" in capsys.readouterr().err
        assert run(["registry", "export", path, "--force"]) == 2, path
    capsys.readouterr()
    assert run(["credential", "new", "code", "--dir", "secrets", "--force"]) == 2
    assert "not even --force" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    assert not Home.find().registry.ledger().investigations
    arguments = ["trace", "../bravo.safetensors", "--out", "case.json", "--report", "cases/case.html"]
    assert run(arguments) == 0
    assert "CERTIFIED" in spoken(capsys)


def test_a_folder_that_cannot_be_written_to_is_found_first(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "closed").mkdir()
    for closed in (here / "closed", here / "home" / "cases"):
        monkeypatch.setattr("os.access", lambda path, mode, closed=closed: Path(path) != closed)
        assert run(["trace", "../bravo.safetensors", "--out", str(here / "closed" / "case.json")]) == 2
        assert "cannot be written to" in capsys.readouterr().err
    assert not Home.find().registry.ledger().investigations


def test_evidence_is_kept_whatever_happens_to_what_was_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = files.write_atomic

    def full(path: Path, data: bytes, **options: bool) -> None:
        if path.suffix in {".out", ".html"}:
            raise Refused(f"{path}: cannot be written (no space left on device)")
        original(path, data, **options)

    monkeypatch.setattr(files, "write_atomic", full)
    monkeypatch.setattr("zktrace.front.case.write_atomic", full)
    arguments = ["trace", "../bravo.safetensors", "--out", "case.out", "--report", "case.html"]
    assert run(arguments) == 0
    text = spoken(capsys)
    assert text.startswith("CERTIFIED: bravo's copy.\n")
    (kept,) = Path("cases").iterdir()
    assert f"evidence  {kept.absolute()}" in text
    assert [line.split(":")[1] for line in text.splitlines()[-2:]] == [" case.out", " case.html"]
    assert text.splitlines()[-1].startswith("warning: ")
    assert run([*arguments, "--json"]) == 0
    facts = facts_of(capsys)
    assert len(facts["warnings"]) == 2  # type: ignore[arg-type]
    assert run(["judge", str(facts["evidence"]), "--head", str(facts["head"])]) == 0
    monkeypatch.undo()


def test_evidence_lies_in_the_workspace_too_and_replaces_none(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Home.find().registry.ledger().size
    Path("cases").mkdir(exist_ok=True)
    old = Path("cases") / f"case-{place}.zkt.json"
    old.write_text("of a log that was set back")
    assert run(["trace", "../bravo.safetensors", "--out", "case.json"]) == 0
    assert old.read_text() == "of a log that was set back"
    kept = old.with_name(f"again-{old.name}")
    assert kept.read_bytes() == Path("case.json").read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_innocents_scores_are_shown_only_where_they_are_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    innocent = [name for name in STATIONS if name != "bravo"]
    assert run(["trace", "../bravo.safetensors", "--report", "case.html"]) == 0
    text, page = spoken(capsys), Path("case.html").read_text()
    assert not any(name in text or name in page for name in innocent)
    assert "bravo" in page
    assert stat.S_IMODE(Path("case.html").stat().st_mode) == 0o600
    assert run(["trace", "../bravo.safetensors", "--json"]) == 0
    facts = facts_of(capsys)
    assert list(facts["scores"]["weight"]) == ["bravo"]  # type: ignore[index]
    assert (facts["others"], facts["warnings"], facts["leads"]) == (3, [], None)
    assert not any(name in json.dumps(facts) for name in innocent)
    (named,) = facts["named"]  # type: ignore[misc]
    bounds = (named["stage_bound"], named["investigation_bound"])
    assert bounds == ("57/80000", "1/1000")  # of a look at 19/20 the first stage, 3/4
    arguments = ["trace", "../bravo.safetensors", "--all-scores", "--report", "all.html"]
    assert run([*arguments, "--json"]) == 0
    facts = facts_of(capsys)
    scores = facts["scores"]["weight"]  # type: ignore[index]
    assert list(scores) == list(STATIONS)
    assert all(name in Path("all.html").read_text() for name in innocent)
    assert "are secrets" in facts["warnings"][0]  # type: ignore[index]
    assert stat.S_IMODE(Path("all.html").stat().st_mode) == 0o600
    assert run([*arguments, "--force"]) == 0
    text = spoken(capsys)
    assert all(name in text for name in innocent)
    assert "\nwarning: scores and leads of stations that are not named are secrets" in text


def test_leads_are_kept_for_the_operator_and_told_nowhere(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(here / "found.safetensors", open_model(here / "bravo.safetensors"))
    arguments = ["trace", "../found.safetensors", "--uncertified", "--yes"]
    assert run([*arguments, "--report", "case.html"]) == 3
    text, page = spoken(capsys), Path("case.html").read_text()
    assert "nothing was spent on this look" in " ".join(text.split())
    assert "nothing was spent on this look" in page
    assert "not so unusual" not in text + page  # the row is plainly there: what lacks is a budget
    assert not any(name in text or name in page for name in STATIONS)
    (line,) = [each for each in text.splitlines() if each.startswith("leads     ")]
    kept = Path(line.removeprefix("leads     ").removesuffix(" (a secret)"))
    assert kept.parent == here / "home" / "secrets"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "bravo: weight carrier, positive tail, score " in kept.read_text()
    assert run([*arguments, "--json"]) == 3
    assert facts_of(capsys)["leads"] is None
    assert run([*arguments, "--all-scores", "--json"]) == 3
    (lead,) = facts_of(capsys)["leads"]  # type: ignore[misc]
    assert lead["station"] == "bravo"


def test_prose_wraps_between_words_and_commands_do_not(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suspect in ("bravo", "unmarked"):
        run(["trace", f"../{suspect}.safetensors"])
        prose, _, rest = spoken(capsys).partition("\nevidence  ")
        assert max(len(line) for line in prose.splitlines()) <= 80
        assert len(prose) > 600
        (command,) = [line for line in rest.splitlines() if line.startswith("check it: ")]
        assert len(command) > 120


def test_printed_commands_hold_hostile_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x'; touch owned; echo '\nCERTIFIED: alpha $(touch owned)"
    shutil.copy(here / "bravo.safetensors", here / "home" / name)
    assert run(["trace", name, "--report", "case.html"]) == 0
    lines = spoken(capsys).splitlines()
    assert [line for line in lines if line.startswith("CERTIFIED")] == lines[:1]
    (command,) = (line.removeprefix("check it: ") for line in lines if line.startswith("check it: "))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    tested = {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=tested)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "values of the suspect read again" in ran.stdout
    assert not Path("owned").exists()
    shown = html.unescape(Path("case.html").read_text())
    assert command.split("--suspect ")[1] in shown


def test_hostile_tensor_names_are_an_error_and_not_a_crash(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", "../bravo.safetensors", "--json"]) == 0
    facts = facts_of(capsys)
    looks = len(Home.find().registry.ledger().investigations)
    state = open_model(here / "shared.safetensors")
    renamed = {name.replace("bn", "bn²", 1) if "0" in name else name: state[name] for name in state}
    save_model(here / "odd.safetensors", renamed)
    assert run(["trace", "../odd.safetensors"]) == 2
    said = capsys.readouterr().err
    assert r"'bn\xb20' instead of 'bn0'" in said
    assert "rename" in said
    assert len(Home.find().registry.ledger().investigations) == looks
    judged = ["judge", str(facts["evidence"]), "--head", str(facts["head"])]
    assert run([*judged, "--suspect", "../odd.safetensors"]) == 1
    for i, station in enumerate(("a", "b")):
        Path(f"{station}.pub").write_bytes(public_key(i).to_bytes())
    assert run(["attribute", "../odd.safetensors", "--public", "a.pub", "--public", "b.pub"]) == 0
    many = {f"{'²' * i}.{part}": np.ones(9) for i in range(1, 5) for part in ("weight", "running_var")}
    save_model(here / "odder.safetensors", many)
    assert run(["trace", "../odder.safetensors"]) == 2
    assert run(["attribute", "../odder.safetensors", "--public", "a.pub", "--public", "b.pub"]) in (0, 2)


def test_both_carriers_are_read_where_torch_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    from zktrace.learning.resnet import ResNet
    from zktrace.learning.states import state_of

    shapes = [CodeShape(carrier=each, colluders=2) for each in ("weight", "feature")]
    home = Home.create(tmp_path / "home", title="test", carriers=shapes)
    home.enrol("alpha", request(0, home.offer))
    rng = np.random.default_rng(0)
    shared = state_of(ResNet(depth=18, channels=1, width=4, rng=rng).eval())
    save_model(tmp_path / "shared.safetensors", shared)
    images = rng.standard_normal((80, 1, 16, 16)).astype(np.float32)
    pool = Pool(images=images, labels=np.arange(80) % 4, episodes={}, note="noise")
    lengths = {"weight": 64, "feature": 64}
    make_release(
        home, tmp_path / "shared.safetensors", carriers=tuple(lengths), name="r1", pool=pool, lengths=lengths
    )
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
    loaded = "import sys; import zktrace.court; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    ).stdout
    assert not {"torch", "sqlalchemy", "zktrace.tracing", "zktrace.registry.stores"} & set(modules.split())


def test_before_any_release_there_is_nothing_to_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "home"]) == 0
    assert run(["trace", "x.safetensors", "--workspace", "home"]) == 2
    assert "there is no release yet (zktrace release makes one)" in capsys.readouterr().err
