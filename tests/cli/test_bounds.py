"""`zktrace bounds`: the paper's numbers from the command line, and bad input in one line."""

import json
from pathlib import Path

import numpy as np
import pytest

from zktrace.cli.app import run
from zktrace.codes import Code, CodeKey, unpack


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["bounds", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_finite_prints_the_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    line = "finite --colluders 2 --length 512 --flip 0.04 --recipients 10 --budget 1e-3"
    facts = ask(capsys, *line.split())
    assert facts["threshold"] == pytest.approx(109.4799, rel=1e-3)
    assert facts["missed_bound"] == pytest.approx(0.004997, rel=1e-3)
    assert facts["method"] == "tight"
    assert isinstance(facts["per_size"], list)
    assert [each["size"] for each in facts["per_size"]] == [1, 2]
    paper = ask(capsys, *line.split(), "--method", "paper")
    assert paper["threshold"] == pytest.approx(111.0004, abs=5e-5)
    assert paper["missed_bound"] == pytest.approx(0.0096, abs=5e-5)


def test_the_other_calculators_print_the_papers_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    threshold = ask(capsys, "threshold")
    assert threshold["candidate_one_tail"] == pytest.approx(97.1, abs=0.05)
    assert threshold["candidate"] == pytest.approx(100.7, abs=0.05)
    presence = ask(capsys, "presence")
    assert (presence["radius"], presence["minimal_length"], presence["minimal_length_radius"]) == (0, 202, 15)
    assert ask(capsys, "presence", "--accuracy", "0.93")["minimal_length"] == 233
    rounds = ask(capsys, "rounds")
    assert rounds["rounds_needed"] == 330
    assert rounds["knowledge_error_log2"] == pytest.approx(-129.623, abs=5e-4)
    assert rounds["knowledge_error_log2_16_bit_mapping"] == pytest.approx(-129.619, abs=5e-4)
    identity = ask(capsys, "identity")
    assert identity["rank_reference"] == 37.5
    assert identity["predicted_bit_accuracy"] == pytest.approx(0.83, abs=0.005)
    assert ask(capsys, "length")["design_length"] == 182


def test_credential_prints_what_a_witness_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of a public estimator, to within 3 bits."""
    paper = ask(capsys, "credential", "--length", "1024", "--secret", "512", "--weight", "128")
    assert paper["witnesses_log2"] == pytest.approx(39.9, abs=0.05)
    assert paper["gilbert_varshamov_distance"] == pytest.approx(115, abs=1)
    assert paper["stern_bits"] == pytest.approx(109, abs=3)
    assert paper["stern_bits_one_solution"] == pytest.approx(149, abs=3)
    default = ask(capsys, "credential", "--length", "1280", "--secret", "640", "--weight", "132")
    assert default["prange_bits"] == pytest.approx(170, abs=3)
    assert default["stern_bits"] == pytest.approx(151, abs=3)
    assert default["witnesses_log2"] == pytest.approx(-31.9, abs=0.1)
    assert ask(capsys, "credential") == default  # the default set


def test_a_certificate_for_a_word_and_for_a_readout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Code(key=CodeKey.generate(entropy=bytes), label="weight", length=512, colluders=2)
    word = unpack(own.rows([0]), 512)[0]
    np.savez(tmp_path / "word.npz", thresholds=own.biases.thresholds, word=word)
    np.savez(tmp_path / "soft.npz", thresholds=own.biases.thresholds, values=2.0 * word - 1)
    exact = ask(capsys, "certificate", str(tmp_path / "word.npz"))
    chernoff = ask(capsys, "certificate", str(tmp_path / "word.npz"), "--method", "chernoff")
    soft = ask(capsys, "certificate", str(tmp_path / "soft.npz"))
    assert 70 < float(str(exact["threshold"])) < float(str(chernoff["threshold"])) < 130
    assert exact["law"] == chernoff["law"] != soft["law"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["finite", "--budget", "2"], "must lie"),
        (["finite", "--flip", "0.7"], "flip"),
        (["threshold", "--length", "0"], "--length"),
        (["threshold", "--colluders", "1"], "--colluders"),
        (["certificate", "missing.npz"], "cannot be read"),
        (["certificate", "other.npz"], "needs an array 'thresholds'"),
        (["certificate", "nan.npz"], "finite"),
        (["certificate", "biases.npz"], "beyond the cutoff"),
        (["length", "--budget", "nan"], "finite"),
        (["credential", "--weight", "0"], "the weight must lie in 1..640"),
        (["credential", "--secret", "1280"], "make no code"),
        (["credential", "--length", "65537"], "make no code"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    middle = np.full(32, 1 << 31, dtype=np.uint32)
    np.savez("other.npz", x=middle)
    np.savez("nan.npz", thresholds=middle, values=np.full(32, np.nan))
    np.savez("biases.npz", thresholds=np.ones(32, dtype=np.uint32), word=np.ones(32, dtype=np.uint8))
    assert run(["bounds", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_text_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bounds", "rounds"]) == 0
    assert "rounds needed" in capsys.readouterr().out
