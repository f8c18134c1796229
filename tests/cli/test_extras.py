"""A package that is not installed is one line with the command that installs it, for every command."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import typer

from zktrace.cli.app import app, run
from zktrace.credentials import SecretKey
from zktrace.errors import EXTRAS, MissingExtra
from zktrace.models import save_model
from zktrace.registry.requests import Request

_CHILD = """
import contextlib, io, json, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
BLOCKED, commands = set(json.loads(sys.argv[1])), json.loads(sys.argv[2])
sys.meta_path.insert(0, Blocked())
from zktrace.cli.app import run
ended = []
for command in commands:
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
        ended.append((run(command), said.getvalue()))
assert not BLOCKED & {name.split(".")[0] for name in sys.modules}
print(json.dumps(ended))
"""

# Every command with the least that brings it to its imports; what of the extras it asks for, None: nothing.
COMMANDS: Mapping[str, tuple[str, str | None]] = {
    "attack collude": ("model.safetensors model.safetensors --out OUT", None),
    "attack distill": ("model.safetensors --out OUT", "learn"),
    "attack fold": ("model.safetensors --out OUT", None),
    "attack finetune": ("model.safetensors --out OUT", "learn"),
    "attack isometry": ("model.safetensors --out OUT", "learn"),
    "attack noise": ("model.safetensors --out OUT", None),
    "attack permute": ("model.safetensors --out OUT", None),
    "attack prune": ("model.safetensors --out OUT", None),
    "attack quantise": ("model.safetensors --out OUT", None),
    "attack rescale": ("model.safetensors --out OUT", None),
    "attack rewrite": ("model.safetensors --out OUT", None),
    "attack reset": ("model.safetensors --out OUT", None),
    "attribute": ("model.safetensors --public a.pub --public b.pub --bits 8", None),
    "cases rebuild": ("7 model.safetensors --workspace w", "operator"),
    "cases resume": ("7 model.safetensors --workspace w", "operator"),
    "data describe": ("--total 600", None),
    "data preview": ("--out OUT", "learn"),
    "demo": ("--out OUT", "learn"),
    "dispatch": ("--all --workspace w", "operator"),
    "fetch": ("http://127.0.0.1:9 --key none.key --release r1", None),
    "join": ("http://127.0.0.1:9 --key none.key --invitation x", None),
    "login": ("http://127.0.0.1:9 --key none.key", None),
    "operator add": ("x --password-stdin --workspace w", "operator"),
    "operator list": ("--workspace w", "operator"),
    "operator remove": ("x --workspace w", "operator"),
    "operator totp": ("x --workspace w", "operator"),
    "sign": ("http://127.0.0.1:9 --key none.key --release r1 --receipt OUT", None),
    "serve": ("--workspace w", "service"),
    "enrol": ("a --request a.request --workspace w", "operator"),
    "guard broadcasts": ("--workspace w", "operator"),
    "guard copies": ("model.safetensors --out OUT --workspace w", "operator"),
    "guard init": ("model.safetensors --workspace w", "operator"),
    "guard prove": ("a 0 --out OUT --workspace w", "operator"),
    "init": ("OUT", "operator"),
    "judge": ("case.json --head zkt-head-v1:1:" + "0" * 64, None),
    "log head": ("--workspace w", "operator"),
    "attest check": ("c --key x", None),
    "attest dispatch": ("a --out OUT --workspace w", "operator"),
    "attest receipt": ("a --out OUT --workspace w", "operator"),
    "attest verdict": ("0 --model model.safetensors --out OUT --workspace w", "operator"),
    "log check": ("c --policy p", None),
    "log checkpoint": ("--workspace w", None),
    "log compare": ("c c --policy p", None),
    "log cosign": ("--workspace w", None),
    "log key": ("--origin x --workspace w", None),
    "log proof": ("0 --out OUT --workspace w", None),
    "log witness": ("--workspace w", None),
    "log prove": ("0 --workspace w", "operator"),
    "log verify": ("--workspace w", "operator"),
    "model show": ("model.safetensors", None),
    "offer": ("--workspace w", "operator"),
    "probes collect": ("a.npz --order order --out OUT", None),
    "probes export": ("--order OUT --out OUT --workspace w", "operator"),
    "receipts ask": ("a --out OUT --workspace w", "operator"),
    "receipts list": ("--workspace w", "operator"),
    "receipts take": ("p --workspace w", None),
    "registry export": ("OUT --workspace w", "operator"),
    "release": ("model.safetensors --workspace w", "operator"),
    "report": ("run", None),
    "reserve": ("3 --workspace w", "operator"),
    "revoke": ("a --reason gone --workspace w", "operator"),
    "stations": ("--workspace w", "operator"),
    "status": ("--workspace w", "operator"),
    "study baselines": ("--out OUT --work w2", "learn"),
    "study attacks": ("--out OUT --work w2", "learn"),
    "study coalitions": ("--out OUT --work w2 --model model.safetensors --dataset gnss", "learn"),
    "study guard": ("--out OUT --work w3 --preset smoke --dataset gnss", "learn"),
    "study disguise": ("--out OUT --work w2", "learn"),
    "study federation": ("--out OUT --work w2", "learn"),
    "study figure": ("channel-price --out OUT", "report"),
    "study innocents": (
        "--out OUT --work w2 --reference model.safetensors --suspect a=model.safetensors --dataset gnss",
        "learn",
    ),
    "study insiders": ("--out OUT --work w2 --dry-run", "learn"),
    "study models": ("--out OUT --work w2", "learn"),
    "study paper": ("--out OUT --work w2", "learn"),
    "study steering": ("--out OUT --trials 1 --dry-run", "learn"),
    "study stressors": ("--out OUT --work w2 --dry-run", "learn"),
    "study strengths": ("--out OUT --work w2", "learn"),
    "study table": ("rows.jsonl --kind federation", None),
    "study tracing": ("--out OUT --work w2 --model model.safetensors --dataset gnss", "learn"),
    "trace": ("model.safetensors --workspace w", "operator"),
    "train": ("--out OUT", "learn"),
    "witness cosign": ("OUT p --out OUT", None),
    "witness heads": ("OUT", None),
    "witness new": ("OUT --name w1", None),
    "witness serve": ("OUT", None),
    "witness watch": ("OUT x", None),
}


def leaves(group: click.Group, *above: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *above, name)
        else:
            yield " ".join((*above, name))


def ended(blocked: set[str], commands: list[list[str]], folder: Path) -> list[tuple[int, str]]:
    """Exit code and complaint of every command where `blocked` cannot be imported."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CHILD, json.dumps(sorted(blocked)), json.dumps(commands)],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: list[tuple[int, str]] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files for the commands to look at; what looks like a workspace is one only where a database can be."""
    root = tmp_path_factory.mktemp("extras")
    rng = np.random.default_rng(0)
    scales = {f"bn{i}.weight": rng.normal(1, 0.1, 1024).astype(np.float32) for i in range(4)}
    norms = {f"bn{i}.running_var": np.ones(1024, np.float32) for i in range(4)}
    save_model(root / "model.safetensors", scales | norms)
    for name in ("a", "b"):
        key = SecretKey.generate()
        (root / f"{name}.pub").write_bytes(key.public.to_bytes())
        (root / f"{name}.request").write_bytes(Request.make(key, bytes(32)).to_bytes())
    (root / "w").mkdir()
    (root / "w" / "zktrace.toml").write_text('version = 1\ndatabase = "registry.db"\n')
    for name in ("case.json", "order", "a.npz", "p"):
        (root / name).write_bytes(b"{}")
    (root / "rows.jsonl").touch()
    (root / "run").mkdir()
    (root / "run" / "spec.json").write_text("{}")
    return root


def test_every_command_says_what_to_install(folder: Path) -> None:
    lines = [
        [*name.split(), *(f"out{i}" if word == "OUT" else word for word in options.split())]
        for i, (name, (options, _)) in enumerate(COMMANDS.items())
    ]
    for (name, (_, extra)), (code, said) in zip(
        COMMANDS.items(), ended(set(EXTRAS), lines, folder), strict=True
    ):
        assert "internal error" not in said, f"{name}: {said}"
        if extra is None:
            assert "pip install" not in said, f"{name}: {said}"
            continue
        assert code == 2, f"{name}: {said}"
        assert f"pip install 'zktrace[{extra}]'" in said, f"{name}: {said}"
        assert said.count("\n") == 1, f"{name}: {said}"


def test_no_command_is_left_out() -> None:
    tree: Any = typer.main.get_command(app)
    light = ("credential", "bounds")  # what a station and anybody else needs: their tests run without extras
    found = {each for each in leaves(tree) if not each.startswith(light)}
    assert found == set(COMMANDS)


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("torch", "release model.safetensors --proxy smoke --carrier feature --workspace home", "learn"),
        ("torch", "dispatch --all --evaluate smoke --workspace home", "learn"),
        ("sklearn", "train --out out", "learn"),
        ("flwr", "train --engine flower --out out", "federation"),
        ("alembic", "operator list --workspace home", "service"),
        ("uvicorn", "demo --serve --out out", "service"),
        ("psycopg", "init out --database postgresql://nobody@localhost/none", "postgresql"),
    ],
)
def test_what_is_missing_later_is_said_as_clearly(
    folder: Path, module: str, command: str, extra: str
) -> None:
    if not (folder / "home").exists():
        assert run(["init", str(folder / "home"), "--carrier", "weight", "--carrier", "feature"]) == 0
        model, home = str(folder / "model.safetensors"), str(folder / "home")
        assert run(["release", model, "--carrier", "weight", "--workspace", home]) == 0
    ((code, said),) = ended({module}, [command.split()], folder)
    assert (code, said.count("\n")) == (2, 1), said
    assert f"pip install 'zktrace[{extra}]'" in said


LIGHT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"sqlalchemy", "torch", "flwr", "sklearn", "scipy", "PIL", "psycopg"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
import zktrace.court, zktrace.evidence, zktrace.tracing, zktrace.credentials, zktrace.registry.workspace
import zktrace.registry.export, zktrace.cli.trace, zktrace.cli.credential, zktrace.cli.bounds
from zktrace.cli.app import run
assert run(["model", "show", "model.safetensors"]) == 0
assert run(["bounds", "threshold", "--help"]) == 0
assert run(["credential", "show", "a.pub"]) == 0
"""


def test_a_judge_needs_no_database_and_no_torch(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_other_missing_modules_are_faults_of_ours() -> None:
    assert MissingExtra.of(ModuleNotFoundError("no", name="zktrace.nothing")) is None
    found = MissingExtra.of(ModuleNotFoundError("no", name="torch.nn"))
    assert found is not None
    assert found.extra == "learn"


def test_the_extras_are_those_of_the_package() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    assert {extra for _, extra in EXTRAS.values()} <= set(project["optional-dependencies"])
    assert not any("sqlalchemy" in each for each in project["dependencies"])
