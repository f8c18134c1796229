"""A file of another kind than wanted is named as what it is, and a secret is never shown."""

import json
from pathlib import Path

import numpy as np
import pytest

from zktrace.cli.app import run
from zktrace.credentials import SecretKey
from zktrace.learning.presets import preset_text
from zktrace.models import save_model

HEAD = "zkt-head-v1:1:" + "0" * 64
OFFER = "zkt-offer-v1:" + "0" * 64


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key = SecretKey.generate()
    (tmp_path / "a.key").write_bytes(key.to_bytes())
    (tmp_path / "a.pub").write_bytes(key.public.to_bytes())
    save_model(tmp_path / "model.safetensors", {"bn1.weight": np.ones(8, np.float32)})
    np.savez(tmp_path / "model.npz", a=np.ones(3))
    (tmp_path / "case.json").write_text('{"accused":[]}')
    whole = preset_text("smoke")
    (tmp_path / "partial.toml").write_text(whole[whole.index("[federation]") : whole.index("[marks]")])
    row = {"trial": {"study": "tracing"}, "outcome": {}, "origin": {}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "none.jsonl").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("attribute model.safetensors --public a.key --public a.pub", "a.key: a secret key, where a public"),
        ("credential verify p --public a.key", "a.key: a secret key, where a public one belongs"),
        ("attribute model.safetensors --public case.json --public a.pub", "case.json: public key"),
        (f"judge model.safetensors --head {HEAD}", "model.safetensors: a model file, where evidence belongs"),
        (f"judge model.npz --head {HEAD}", "model.npz: a model file, where evidence belongs"),
        (f"judge a.key --head {HEAD}", "a.key: not evidence"),
        (f"judge case.json --head {HEAD} --policy a.key", "a.key: policy: not TOML"),
        (f"judge case.json --head {HEAD} --policy big", "big: 90000 bytes, the limit is 65536"),
        ("credential verify case.json --public a.pub", "case.json: proof: does not begin with"),
        (
            "credential verify p --public big",
            "big: 90000 bytes, the limit is 16384: a public key (.pub) belongs",
        ),
        ("credential show case.json", "case.json: public key: does not begin with"),
        ("credential prove --key a.pub --message p --out x", "a.pub: secret key: does not begin with"),
        (f"credential request --key case.json --offer {OFFER} --out x", "case.json: secret key: does not"),
        ("enrol a --request a.key", "a.key: request: not canonical JSON, nor any text; a station's request"),
        ("enrol a --request case.json", "case.json: request: its format must be zkt-request-v1; a station's"),
        (f"log verify --proof case.json --head {HEAD}", "case.json: inclusion proof"),
        (f"log verify --proof case.json --head {HEAD} --since {HEAD}", "case.json: consistency proof"),
        ("model show case.json", "case.json: seems to be JSON text: evidence of a case"),
        ("attack reset case.json --out x", "case.json: seems to be JSON text: evidence of a case"),
        ("model show a.key", "a.key: seems to be a key of a station"),
        ("study table rows.jsonl --kind federation", "rows.jsonl: holds rows of tracing, and this table"),
        ("study table rows.jsonl --kind tracing --seed 5", "there are no rows of the seeds 5"),
        ("study table none.jsonl --kind innocents", "none.jsonl: holds no rows"),
        ("study table gone.jsonl --kind innocents", "gone.jsonl: no such file"),
    ],
)
def test_the_line_names_the_file_and_what_it_is(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    (here / "p").touch()
    (here / "big").write_bytes(bytes(90_000))
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    secret = (here / "a.key").read_bytes()
    for shown in (secret[40:56].hex(), repr(secret[40:56])[2:-1], ascii(secret[40:56])[2:-1]):
        assert shown not in said


def test_a_partial_preset_says_what_is_missing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    assert run(["train", "--preset", "partial.toml", "--out", "run"]) == 2
    said = capsys.readouterr().err
    assert "partial.toml: missing keys 'data', 'episodes'" in said
    assert "a preset is whole (copy one of smoke" in said
