"""The command line as a user meets it: real processes for the whole, in-process calls for the corners."""

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.cli.app import run
from zktrace.credentials import DEFAULT, PublicKey
from zktrace.models import save_model
from zktrace.readouts.identity import IdentityCodebook

WEAK = ("--params", "test-128-64-16", "--allow-weak-params")  # quick


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    """Exit code and JSON object of a command run with --json."""
    code = run([*arguments, "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return code, json.loads(out)


def process(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zktrace", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | more,
    )


def make_model(path: Path, counter: int = 1) -> None:
    arrays = {"bn.weight": np.ones(8, np.float32), "bn.num_batches_tracked": np.array(counter)}
    save_model(path, arrays)


def test_version_and_help() -> None:
    assert process("--version").stdout == f"zktrace {zktrace.__version__}\n"
    shown = process("--help")
    assert shown.returncode == 0
    for word in ("credential", "model", "demo", "--debug", "--install-completion"):
        assert word in shown.stdout


def test_shell_completion_is_offered() -> None:
    told = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # a test has no shell above it
    shown = process("--show-completion", "bash", **told)
    assert shown.returncode == 0
    assert "_ZKTRACE_COMPLETE" in shown.stdout
    words = process(_ZKTRACE_COMPLETE="complete_bash", COMP_WORDS="zktrace cred", COMP_CWORD="1")
    assert "credential" in words.stdout


def test_the_whole_credential_story(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, made = ask(capsys, "credential", "new", "alpha")
    assert code == 0
    assert stat.S_IMODE((here / "alpha.key").stat().st_mode) == 0o600
    assert made["public_bytes"] == (here / "alpha.pub").stat().st_size == 225
    for file in ("alpha.key", "alpha.pub"):
        assert ask(capsys, "credential", "show", file)[1]["fingerprint"] == made["fingerprint"]
    assert run(["credential", "show", "alpha.key", "--codeword"]) == 0
    word = capsys.readouterr().out
    assert word.strip() == made["codeword"]
    (here / "component").write_text(word)
    (here / "receipt").write_bytes(b"copy 7 received")
    make_model(here / "model.safetensors")
    statements = {
        "credential": [],
        "message": ["--message", "receipt"],
        "model": ["--model", "model.safetensors", "--component", "component"],
    }
    for made_mode, options in statements.items():
        code, facts = ask(capsys, "credential", "prove", "--key", "alpha.key", *options, "--out", made_mode)
        assert (code, facts["mode"], facts["rounds"]) == (0, made_mode, 331)
        assert facts["proof_bytes"] == (here / made_mode).stat().st_size
        for asked_mode, asked in statements.items():
            code, facts = ask(capsys, "credential", "verify", "--public", "alpha.pub", *asked, made_mode)
            assert code == (0 if asked_mode == made_mode else 1)
            assert facts["ok"] is (asked_mode == made_mode)
    make_model(here / "model.safetensors.new", counter=2)
    os.replace("model.safetensors.new", "model.safetensors")
    code, facts = ask(capsys, "credential", "verify", "--public", "alpha.pub", *statements["model"], "model")
    assert (code, facts["error"], facts["check"]) == (1, "InvalidProof", "challenge")
    assert isinstance(facts["round"], int)


def test_presence_and_radius(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["credential", "new", "a", *WEAK])
    capsys.readouterr()
    run(["credential", "show", "a.pub", "--codeword"])
    word = capsys.readouterr().out.strip()
    (here / "component").write_text("10"[int(word[0])] + word[1:])
    make_model(here / "m.safetensors")
    model = ["--model", "m.safetensors", "--component", "component"]
    assert ask(capsys, "credential", "prove", "--key", "a.key", *model, "--out", "p")[0] == 0
    verify = ["credential", "verify", "--allow-weak-params", "--public", "a.pub"]
    code, facts = ask(capsys, *verify, *model, "p")
    assert (code, facts["check"]) == (1, "presence")
    code, facts = ask(capsys, *verify, *model, "--radius", "1", "p")
    assert facts["component_source"] == "component as given, not read from the model"
    assert (code, facts["component_bits"], facts["component_distance"], facts["radius"]) == (0, 128, 1, 1)
    assert len(str(facts["model_digest"])) == 64
    assert ask(capsys, *verify, *model, "--radius", "128", "p")[0] == 2
    assert ask(capsys, *verify, "--radius", "1", "p")[0] == 2


def test_nothing_is_overwritten_silently(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["credential", "new", "alpha"]) == 0
    before = (here / "alpha.key").read_bytes()
    assert run(["credential", "new", "alpha"]) == 2
    assert "exists already" in capsys.readouterr().err
    (here / "alpha.pub").unlink()
    assert run(["credential", "new", "alpha"]) == 2
    assert (here / "alpha.key").read_bytes() == before
    (here / "bravo.pub").touch()
    assert run(["credential", "new", "bravo"]) == 2
    assert not (here / "bravo.key").exists()
    for force in ([], ["--force"]):
        assert run(["credential", "prove", "--key", "alpha.key", "--out", "alpha.key", *force]) == 2
        assert (here / "alpha.key").read_bytes() == before
    assert run(["credential", "new", "alpha", "--force"]) == 0
    assert (here / "alpha.key").read_bytes() != before
    assert stat.S_IMODE((here / "alpha.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["credential", "new", "../x"], "is no station name"),
        (["credential", "new", "x", "--params", "nope"], "unknown parameter set 'nope'"),
        (["credential", "new", "x", "--dir", "missing"], "cannot be written"),
        (["credential", "show", "missing"], "cannot be read (no such file or directory)"),
        (["credential", "show", "."], "is not a regular file"),
        (["credential", "show", "junk"], "does not begin with"),
        (["credential", "show", "big"], "the limit is"),
        (["credential", "prove", "--key", "junk", "--out", "p"], "secret key: does not begin with"),
        (["credential", "prove", "--key", "a.key", "--out", "p", "--model", "junk"], "belong together"),
        (
            ["credential", "prove", "--key", "a.key", "--out", "p", "--message", "junk", "--model", "junk"],
            "cannot be combined",
        ),
        (
            ["credential", "prove", "--key", "a.key", "--out", "p", "--model", "junk", "--component", "junk"],
            "junk",
        ),
        (["credential", "verify", "--public", "a.pub", "junk"], "--allow-weak-params"),
        (
            ["credential", "verify", "--public", "a.pub", "--allow-weak-params", "junk"],
            "proof: does not begin with",
        ),
        (
            ["credential", "verify", "--public", "a.key", "junk"],
            "a.key: a secret key, where a public one belongs",
        ),
        (["credential", "verify"], "Missing"),
        (["credential", "nonsense"], "nonsense"),
        (["model", "show", "junk"], "junk"),
        (["model", "show", "missing"], "cannot be read"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    run(["credential", "new", "a", *WEAK])
    (here / "junk").write_bytes(b"junk")
    with (here / "big").open("wb") as handle:
        handle.truncate(1 << 33)
    capsys.readouterr()
    before = sorted(here.iterdir())
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert sorted(here.iterdir()) == before


def test_errors_are_json_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = ask(capsys, "credential", "show", "missing")
    assert (code, facts["ok"], facts["error"]) == (2, False, "Refused")
    code, facts = ask(capsys, "credential", "verify")
    assert (code, facts["ok"], facts["error"]) == (2, False, "InputError")


def test_a_traceback_appears_only_with_debug(here: Path) -> None:
    assert "Traceback" not in process("credential", "show", "missing").stderr
    debugged = process("--debug", "credential", "show", "missing")
    assert "Traceback" in debugged.stderr
    assert debugged.returncode == 2


@pytest.mark.parametrize(
    ("name", "standing", "words"),
    [
        ("xlpn-1024-512-128", "reproduction", "a key has about 2^40 witnesses"),
        ("test-128-64-16", "test", "anybody can forge its proofs"),
    ],
)
def test_a_set_that_is_not_strong_needs_a_permission(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, standing: str, words: str
) -> None:
    new = ["credential", "new", "t", "--params", name]
    verify = ["credential", "verify", "--public", "t.pub", "p"]
    assert ask(capsys, *new)[1]["error"] == "WeakParameters"
    assert not list(here.iterdir())
    assert ask(capsys, *new, "--allow-weak-params")[1]["standing"] == standing
    run(["credential", "prove", "--key", "t.key", "--out", "p"])
    capsys.readouterr()
    assert run(verify) == 2
    refusal = capsys.readouterr().err
    assert refusal.startswith(f"error: t.pub: {name} is ")
    assert words in refusal
    assert "(--allow-weak-params)" in refusal
    assert run([*verify, "--allow-weak-params"]) == 0
    assert f"warning: {name} is " in capsys.readouterr().out


def test_the_default_set_is_the_librarys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ask(capsys, "credential", "new", "t")[1]
    assert (made["params"], made["standing"]) == (DEFAULT.name, "strong")


def test_model_show_prints_the_digest(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_model(here / "m.safetensors")
    code, facts = ask(capsys, "model", "show", "m.safetensors")
    assert (code, facts["tensors"], facts["tensor_bytes"]) == (0, 2, 40)
    assert run(["model", "show", "m.safetensors"]) == 0
    assert capsys.readouterr().out.startswith(str(facts["digest"]))


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(here: Path, unbuffered: str) -> None:
    """The exit code is never 1, which would mean a rejection."""
    command = f"{shlex.quote(sys.executable)} -m zktrace bounds --help | true; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=environment
    )
    assert ended.returncode in (0, 141)
    assert ended.stderr == ""


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m zktrace {line}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


def test_output_that_cannot_be_written_is_one_line(here: Path) -> None:
    full = shell("--version > /dev/full")
    assert full.returncode == 2
    assert full.stderr == "error: input or output: No space left on device\n"
    assert shell("--version >&-").returncode == 0


def test_hostile_file_names_stay_on_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["credential", "show", "a\nb\x1b[31m"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "\x1b" not in shown
    assert run(["credential", "prove", "--key", "a", "--out", "x" * 300]) == 2
    assert run(["credential", "new", "a", "--dir", "x" * 300]) == 2
    capsys.readouterr()
    run(["credential", "new", "t", *WEAK])
    odd = os.fsdecode(b"p\xff")
    assert run(["credential", "prove", "--key", "t.key", "--out", odd]) == 0
    assert Path(odd).exists()


def test_a_fault_of_ours_is_one_line_and_not_a_rejection(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(path: Path, *, limit: int) -> bytes:
        raise RuntimeError("oops")

    monkeypatch.setattr("zktrace.primitives.files.read_bounded", broken)
    assert run(["credential", "show", "x", "--json"]) == 70
    shown = capsys.readouterr()
    assert shown.err == "error: internal error, RuntimeError: oops (--debug shows where)\n"
    assert json.loads(shown.out)["ok"] is False


def test_a_lost_public_key_comes_back_from_the_secret_one(here: Path) -> None:
    run(["credential", "new", "alpha"])
    before = Path("alpha.pub").read_bytes()
    Path("alpha.pub").unlink()
    assert run(["credential", "show", "alpha.key", "--public-out", "alpha.pub"]) == 0
    assert Path("alpha.pub").read_bytes() == before
    assert run(["credential", "show", "alpha.key", "--public-out", "alpha.pub"]) == 2


def test_bare_commands_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["credential"], ["bounds"]):
        assert run(arguments) == 2
        shown = capsys.readouterr()
        assert "Usage" in shown.out
        assert shown.err == ""


def test_a_component_is_read_from_the_model_by_the_registry(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = IdentityCodebook(stations=2, bits=16, layers=(40, 40))
    for name in ("alpha", "bravo"):
        run(["credential", "new", name, *WEAK])
    run(["init", "home", "--identity-bits", "16"])
    capsys.readouterr()
    assert run(["offer", "--workspace", "home"]) == 0
    offer = capsys.readouterr().out.strip()
    for name in ("alpha", "bravo"):
        asked = ["--key", f"{name}.key", "--offer", offer, "--out", f"{name}.request"]
        assert run(["credential", "request", *asked]) == 0
        enrol = ["enrol", name, "--request", f"{name}.request", "--workspace", "home"]
        assert run([*enrol, "--allow-weak-params"]) == 0
    key = PublicKey.from_bytes((here / "bravo.pub").read_bytes())
    word = np.unpackbits(np.frombuffer(key.codeword(16), dtype=np.uint8))
    gamma = np.linalg.lstsq((2.0 * word[:, None] - 1) * book.block(1), np.ones(16), rcond=None)[0]
    arrays = {f"bn{i}.weight": part.astype(np.float32) for i, part in enumerate(np.split(gamma, 2))}
    arrays |= {f"bn{i}.running_var": np.ones(40, np.float32) for i in range(2)}
    save_model("marked.safetensors", arrays)
    save_model("other.safetensors", arrays | {"bn0.weight": -arrays["bn0.weight"] - arrays["bn1.weight"]})
    capsys.readouterr()
    marked = ["--model", "marked.safetensors", "--workspace", "home", "--station"]
    prove = ["credential", "prove", "--out", "p", "--force", "--key"]
    verify = ["credential", "verify", "--allow-weak-params", "p", "--public"]
    code, facts = ask(capsys, *prove, "bravo.key", *marked, "bravo")
    assert (code, facts["component_source"]) == (0, "component of bravo, read from the model")
    code, facts = ask(capsys, *verify, "bravo.pub", *marked, "bravo")
    assert (code, facts["component_distance"], facts["component_bits"]) == (0, 0, 16)
    assert facts["component_source"] == "component of bravo, read from the model"
    for wrong in (["alpha.pub", *marked, "bravo"], ["bravo.pub", *marked, "alpha"]):
        code, facts = ask(capsys, *verify, *wrong)
        assert (code, facts["error"]) == (2, "Refused")
        assert "enrolled with another credential" in str(facts["message"])
    # a holder who brings a component of its own liking for a model that does not carry it
    run(["credential", "show", "bravo.pub", "--codeword", "--bits", "16"])
    (here / "claimed").write_text(capsys.readouterr().out)
    other = ["--model", "other.safetensors"]
    assert ask(capsys, *prove, "bravo.key", *other, "--component", "claimed")[0] == 0
    code, facts = ask(capsys, *verify, "bravo.pub", *other, "--component", "claimed")
    assert (code, facts["component_source"]) == (0, "component as given, not read from the model")
    assert ask(capsys, *verify, "bravo.pub", *other, "--station", "bravo", "--workspace", "home")[0] == 1
    for mixed in (
        ["--station", "bravo"],
        [*other, "--station", "bravo", "--component", "claimed"],
        [*other, "--component", "claimed", "--workspace", "home"],
        ["--message", "claimed", "--station", "bravo"],
    ):
        assert ask(capsys, *verify, "bravo.pub", *mixed)[0] == 2
