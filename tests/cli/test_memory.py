"""No model file of up to 100 MB makes a command use more than 1.5 GB, whatever its header claims.

Commands run in a child process, which says at its end how much was ever resident, its own children included.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli import hostile
from dispatch.small import SHAPES, model_file, operator, secret_key, short_release
from zktrace.cli.app import run
from zktrace.dispatch.dispatching import dispatch

MOST = 1_500_000_000  # bytes
GUARD = 3 << 30  # no test may take the machine's memory: beyond it, allocations fail
EXPECTED = (0, 1, 2, 4)  # every exit code but that of an internal error

CHILD = f"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({GUARD}, {GUARD}))
from zktrace.cli.app import run
codes = [run(arguments) for arguments in json.loads(sys.argv[1])]
own = int(re.search(r"VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1])
most = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print()
print(json.dumps([most * 1024, codes]))
"""

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read in /proc")


def most_resident(commands: Sequence[Sequence[object]], here: Path) -> int:
    """The most bytes that were ever resident while these commands ran, one after the other."""
    listed = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, listed], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    most, codes = json.loads(done.stdout.splitlines()[-1])
    assert all(code in EXPECTED for code in codes), (codes, done.stderr[-2000:])
    assert "internal error" not in done.stderr
    return int(most)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an operator, a copy, evidence about it and two public keys."""
    here = tmp_path_factory.mktemp("memory")
    workspace = operator(here / "op", "alpha", "beta", shapes=SHAPES[:1])
    short_release(workspace, model_file(here / "shared.safetensors"), name="r1")
    copy = next(iter(dispatch(workspace, stations=["alpha"]))).path
    options = ["--workspace", str(here / "op"), "--out", str(here / "case.json"), "--budget", "1e-3"]
    assert run(["trace", str(copy), *options]) in EXPECTED
    (here / "head").write_text(workspace.registry.head().to_text())
    for name in ("alpha", "beta"):
        (here / f"{name}.pub").write_bytes(secret_key(name).public.to_bytes())
    return here


def reading(here: Path, file: Path) -> list[list[object]]:
    """Every light command that reads a model which somebody else made."""
    judged = ["judge", here / "case.json", "--head", (here / "head").read_text().strip()]
    operator_at = ["--workspace", here / "op"]
    return [
        ["model", "show", file],
        ["attribute", file, "--public", here / "alpha.pub", "--public", here / "beta.pub"],
        ["credential", "component", file, "--station", "alpha", *operator_at],
        ["trace", file, "--budget", "1e-6", *operator_at],
        [*judged, "--suspect", file],
        [*judged, "--shared", file],
        ["release", file, "--carrier", "weight", *operator_at],
    ]


@linux
@pytest.mark.parametrize("make", [hostile.many_views, hostile.one_wide_layer])
def test_small_files_that_claim_much(place: Path, make: hostile.Make) -> None:
    assert most_resident(reading(place, make(place / make.__name__)), place) < MOST


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        hostile.many_names,
        hostile.wide_layers,
        hostile.wide_torch,
        hostile.widest_that_is_read,
        hostile.one_wide_array,
        hostile.turned_npz,
        hostile.wide_resnet,
        hostile.huge_head,
    ],
)
def test_large_files(place: Path, make: hostile.Make) -> None:
    file = make(place / make.__name__)
    assert os.path.getsize(file) <= hostile.LARGE
    assert most_resident(reading(place, file), place) < MOST


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [hostile.wide_layers, hostile.one_wide_array, hostile.wide_resnet, hostile.integer_resnet]
)
def test_attacks_on_large_files(place: Path, make: hostile.Make) -> None:
    file, out = make(place / make.__name__), ["--out", place / "attacked", "--force"]
    attacks: list[list[object]] = [
        ["attack", "quantise", file, "--all", *out],
        ["attack", "prune", file, *out],
        ["attack", "noise", file, *out],
        ["attack", "reset", file, *out],
        ["attack", "collude", file, file, *out],
        ["attack", "collude", file, file, "--strategy", "modified-negative", *out],
        ["attack", "rescale", file, "--norms", *out],
        ["attack", "permute", file, *out],
    ]
    assert most_resident(attacks, place) < MOST


@linux
@pytest.mark.slow
def test_attacks_that_train(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    out: list[object] = ["--out", tmp_path / "attacked", "--force"]
    small: list[object] = ["--epochs", 1, "--samples", 64, "--width", 4, "--data", "smoke"]
    attacks = [
        ["attack", "finetune", hostile.wide_resnet(tmp_path / "wide"), "--episodes", 1, *out],
        ["attack", "distill", hostile.huge_head(tmp_path / "head"), *small, *out],
        ["attack", "isometry", hostile.wide_resnet(tmp_path / "wide"), *out],
    ]
    assert most_resident(attacks, tmp_path) < MOST


@linux
@pytest.mark.slow
@pytest.mark.parametrize("make", [hostile.wide_resnet, hostile.huge_head, hostile.integer_resnet])
def test_carriers_that_run_the_suspect(tmp_path: Path, make: hostile.Make) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from dispatch import test_modes as small

    here = tmp_path
    workspace = operator(here / "op", "alpha", "beta", shapes=SHAPES)
    carriers = ("weight", "feature", "output")
    short_release(workspace, small.model(here / "m"), carriers=carriers, name="r1", pool=small.pool(320))
    commands = [["trace", make(here / "suspect"), "--budget", "1e-6", "--workspace", here / "op"]]
    assert most_resident(commands, here) < MOST
