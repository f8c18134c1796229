"""The options of `zktrace train --engine flower`: nothing here starts a deployment."""

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run
from zktrace.errors import Error, FederationFailed, InputError
from zktrace.learning.presets import preset_text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "smoke.toml").write_text(preset_text("smoke"))
    (tmp_path / "ca.crt").write_text("not looked at")
    return tmp_path


FLOWER = ["train", "--preset", "smoke.toml", "--out", "run", "--engine", "flower"]


@pytest.mark.parametrize(
    "option",
    [
        ["--address", "127.0.0.1:1"],
        ["--root-certificates", "ca.crt"],
        ["--node-key", "node.pub"],
        ["--prepare", "run.json"],
    ],
)
def test_options_of_flower_need_flower(
    here: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert run(["train", "--preset", "smoke.toml", "--out", "run", *option]) == 2
    assert "need --engine flower" in capsys.readouterr().err
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "127.0.0.1:1"], "--address and --root-certificates go together"),
        (["--root-certificates", "ca.crt"], "--address and --root-certificates go together"),
        (["--node-key", "node.pub"], "--address and --root-certificates go together"),
        (["--engine", "carrier-pigeon"], "carrier-pigeon"),
        (["--round-timeout", "0"], "round-timeout"),
    ],
)
def test_options_that_do_not_fit_are_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run([*FLOWER, *options]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert not (here / "run").exists()


@pytest.mark.parametrize("options", [[], ["--prepare", "run.json"]])
def test_without_flower_installed_it_says_what_to_install(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "flwr" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert run([*FLOWER, *options]) == 2
    assert "pip install 'zktrace[federation]'" in capsys.readouterr().err
    assert not (here / "run.json").exists()


class TestWithFlower:
    """What needs the extra, but no process of it."""

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--address", "nowhere", "--root-certificates", "ca.crt"], "an address is host:port"),
            (["--address", "127.0.0.1:1", "--root-certificates", "no.crt"], "no.crt: no such file"),
        ],
    )
    def test_a_place_that_cannot_be(
        self, here: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
    ) -> None:
        assert run([*FLOWER, *options]) == 2
        assert words in capsys.readouterr().err

    def test_prepare_writes_the_run_file_of_this_very_run(
        self, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from zktrace.federation.flower.loopback import make_node_key
        from zktrace.federation.flower.runfile import read_run_file

        lines = [make_node_key(here / f"node{station}") for station in range(3)]
        keys = [word for station in range(3) for word in ("--node-key", f"node{station}.pub")]
        assert run([*FLOWER, "--prepare", "run.json", *keys, "--seed", "7", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        found = read_run_file(here / "run.json")
        assert facts == {"ok": True, "run_file": "run.json", "spec": found.spec.digest()}
        assert found.spec.seed == 7
        assert [line.split()[:2] for line in found.nodes] == [line.split()[:2] for line in lines]
        assert not (here / "run").exists()

    def test_prepare_keeps_an_existing_file_and_hints_at_nothing_that_is_not_there(
        self, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (here / "run.json").write_text("precious")
        assert run([*FLOWER, "--prepare", "run.json"]) == 2
        shown = capsys.readouterr().err
        assert "run.json: exists already" in shown
        assert "--force" not in shown
        assert (here / "run.json").read_text() == "precious"

    @pytest.mark.parametrize(
        ("keys", "words"),
        [
            (["--node-key", "ca.crt"], "1 node keys for 3 stations"),
            (["--node-key", "ca.crt"] * 3, "node key"),
        ],
    )
    def test_prepare_looks_at_the_keys(
        self, here: Path, capsys: pytest.CaptureFixture[str], keys: list[str], words: str
    ) -> None:
        assert run([*FLOWER, "--prepare", "run.json", *keys]) == 2
        assert words in capsys.readouterr().err

    def test_a_deployment_that_does_not_answer_is_a_failure_of_its_own_kind(
        self, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from zktrace.federation.flower import superlink

        def silent(*_: object, **__: object) -> None:
            raise superlink.subprocess.TimeoutExpired("flwr", 1)

        monkeypatch.setattr(superlink.subprocess, "run", silent)
        place = ["--address", "127.0.0.1:1", "--root-certificates", "ca.crt"]
        assert run([*FLOWER, *place, "--json"]) == 2
        facts = json.loads(capsys.readouterr().out)
        assert facts["error"] == "FederationFailed"
        assert "no answer within" in facts["message"]


def test_a_failed_federation_is_no_input_error() -> None:
    assert issubclass(FederationFailed, Error)
    assert not issubclass(FederationFailed, InputError)
