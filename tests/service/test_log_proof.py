"""An entry under the last checkpoint, in one file that other tools read."""

from pathlib import Path

import pytest

from service.small import house
from zktrace.cli.app import run
from zktrace.registry.witnessing import PublicLog
from zktrace.transparency.keys import Kind
from zktrace.transparency.proof import LogProof


def test_an_entry_and_its_proof_are_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = house(tmp_path)
    anybody = made.client()
    where = "/api/v1/log/entries/{}/tlog-proof"
    assert anybody.get(where.format(1)).status_code == 404
    assert "tlog-proof" not in anybody.get("/log/1").text
    log = PublicLog(made.home)
    log.make_keys("north.example/log", [Kind.NOTE])
    log.sign()
    size = made.home.registry.ledger().size
    made.home.dispatch("alpha", "r1")  # later than the checkpoint
    answer = anybody.get(where.format(1))
    assert answer.status_code == 200
    assert "entry-1.tlog-proof" in answer.headers["content-disposition"]
    assert LogProof.from_bytes(answer.content) == log.proof(1)
    assert where.format(1) in anybody.get("/log/1").text
    file, policy = tmp_path / "entry.tlog-proof", tmp_path / "policy.toml"
    file.write_bytes(answer.content)
    (signer,) = log.signers()
    policy.write_text(f'logs = ["{signer.verifier.to_text()}"]\n')
    assert run(["log", "check", str(file), "--policy", str(policy)]) == 0
    assert "entry 1 is under the checkpoint" in capsys.readouterr().out
    for index in (size, size + 5):
        late = anybody.get(where.format(index))
        assert (late.status_code, late.json()["title"]) == (404, "Not there")
    assert "tlog-proof" not in anybody.get(f"/log/{size}").text
    assert anybody.get(where.format(-1)).status_code == 404
