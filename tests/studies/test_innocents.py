"""The study of innocents: what it counts, what it would notice, and that it is resumed."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.attacks.scales import batch_norms, noise_scales
from zktrace.carriers.feature import FeatureReader
from zktrace.carriers.weight import WeightWriter
from zktrace.certificates.adjudicate import Verdict
from zktrace.cli.app import run
from zktrace.codes import Code, unpack
from zktrace.errors import InputError
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.models import open_model, save_model
from zktrace.readouts.scales import layer_sizes
from zktrace.studies import innocents
from zktrace.studies.innocents import InnocentsTrial, draws, greatest, interval, perform
from zktrace.studies.rows import Rows
from zktrace.studies.tables import innocents_table

LENGTH = 48


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("innocents") / "shared.safetensors"
    state = state_of(ResNet(depth=18, channels=1, width=4, rng=np.random.default_rng(3)))
    rng = np.random.default_rng(4)
    for name in (f"{layer}.weight" for layer in batch_norms(state)):  # fresh ones are all 1
        state[name] = (1 + 0.2 * rng.standard_normal(state[name].shape)).astype(np.float32)
    save_model(path, state)
    return path


@pytest.fixture(scope="module")
def noised(shared: Path) -> Path:
    path = shared.with_name("noised.safetensors")
    save_model(path, noise_scales(open_model(shared), sigma=0.3, rng=np.random.default_rng(5)))
    return path


def small(shared: Path, suspects: dict[str, Path], **changes: Any) -> InnocentsTrial:
    trial = InnocentsTrial(
        dataset="gnss",
        reference=shared,
        suspects=suspects,
        levels=(Fraction(1, 5),),
        length=LENGTH,
        recipients=5,
        keys=60,
        families=3,
        seed=7,
    )
    return replace(trial, **changes)


def test_a_row_for_every_suspect_profile_and_level_made_once(
    shared: Path, noised: Path, tmp_path: Path
) -> None:
    trial = small(shared, {"itself": shared, "noised": noised}, levels=(Fraction(1, 5), Fraction(1, 1000)))
    rows = Rows(tmp_path / "rows.jsonl")
    made = perform(replace(trial, suspects={"itself": shared}), rows)
    assert len(made) == 4
    counted: list[tuple[str, int, int]] = []
    made += perform(trial, rows, progress=lambda what, done, of: counted.append((what, done, of)))
    assert len(made) == 8
    assert len(counted) == 4 * trial.keys  # those of the first call were not made again
    assert counted[-1] == ("noised, paper, 1/1000", 60, 60)
    assert perform(trial, rows) == []
    assert all(row.outcome["within"] and row.outcome["keys"] == trial.keys for row in made)
    by_name = {(row.trial["kind"], row.trial["profile"], row.trial["level"]): row for row in made}
    assert by_name["itself", "informed", "1/5"].outcome["namings"] == 0  # a readout of zeros says nothing
    assert by_name["noised", "informed", "1/5"].outcome["namings"] > 0  # the bound is not idle
    same = {kind: row.trial["suspect"] == row.trial["reference"] for (kind, _, _), row in by_name.items()}
    assert same == {"itself": True, "noised": False}
    table = innocents_table(rows.read())
    assert table.count("\n") == 9
    assert "| 0.2 | informed | weight | GNSS, simulated | itself | 60 | 0 | 0.00 to 8.45 % | 27 |" in table


def test_the_same_seed_repeats_a_row_and_another_does_not(shared: Path, noised: Path, tmp_path: Path) -> None:
    trial = small(shared, {"noised": noised}, profiles=("informed",), keys=30)
    first, again = (perform(trial, Rows(tmp_path / f"{number}.jsonl")) for number in range(2))
    assert [row.outcome for row in first] == [row.outcome for row in again]
    assert draws(trial, "noised") == draws(trial, "noised")
    assert draws(replace(trial, keys=4), "noised").keys == draws(trial, "noised").keys[:4]
    everything = [draws(replace(trial, seed=seed), kind) for seed in (7, 8) for kind in ("noised", "other")]
    secrets = {key.secret for each in everything for key in each.keys}
    assert len(secrets) == 4 * trial.keys
    assert not secrets & {seed for each in everything for seed in each.families}


def test_a_suspect_that_is_marked_under_a_key_is_named_by_it(shared: Path, tmp_path: Path) -> None:
    trial = small(shared, {"marked": tmp_path / "marked.safetensors"}, levels=(Fraction(1, 1000),), keys=4)
    drawn, state = draws(trial, "marked"), open_model(shared)
    code = Code(key=drawn.keys[1], label="weight", length=LENGTH, colluders=trial.colluders)
    writer = WeightWriter(seed=drawn.families[1], length=LENGTH, layers=layer_sizes(state))
    save_model(trial.suspects["marked"], writer.write(state, unpack(code.rows([3]), LENGTH)[0]).state)
    made = perform(replace(trial, profiles=("informed",)), Rows(tmp_path / "rows.jsonl"))
    assert [row.outcome["namings"] for row in made] == [1]  # key 1 and no other


def test_a_scorer_that_spends_more_than_the_budget_is_noticed(
    shared: Path, noised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = innocents.score

    def generous(*given: Any, level: Fraction, **others: Any) -> Any:
        return real(*given, level=Fraction(9, 10), **others)

    trial = small(shared, {"noised": noised}, profiles=("informed",), levels=(Fraction(1, 100),), keys=30)
    (honest,) = perform(trial, Rows(tmp_path / "honest.jsonl"))
    monkeypatch.setattr(innocents, "score", generous)
    (broken,) = perform(trial, Rows(tmp_path / "broken.jsonl"))
    assert honest.outcome["within"]
    assert not broken.outcome["within"]
    assert broken.outcome["low"] > 0.01
    assert "(budget refuted)" in innocents_table([broken])


def test_only_certified_namings_count(
    shared: Path, noised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = innocents.score
    verdicts = iter([Verdict.LEAD, Verdict.NOTHING, Verdict.TAMPER, Verdict.ATTRIBUTE])

    def scripted(*given: Any, **others: Any) -> Any:
        assert others["certify"]
        return replace(real(*given, **others), verdict=next(verdicts))

    monkeypatch.setattr(innocents, "score", scripted)
    (row,) = perform(
        small(shared, {"noised": noised}, profiles=("paper",), keys=4), Rows(tmp_path / "rows.jsonl")
    )
    assert row.outcome["namings"] == 2


def test_the_feature_carrier_embeds_probes_once_a_model(
    shared: Path, noised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, embedded = FeatureReader.features, []

    def counted(reader: FeatureReader, arrays: Any, images: Any) -> Any:
        embedded.append(len(images))
        return real(reader, arrays, images)

    monkeypatch.setattr(FeatureReader, "features", counted)
    rng = np.random.default_rng(9)
    probes = tmp_path / "probes.safetensors"
    save_model(probes, {"probes": rng.standard_normal((LENGTH + 2, 1, 16, 16)).astype(np.float32)})
    trial = small(shared, {"noised": noised}, carrier="feature", probes=probes, keys=6)
    made = perform(trial, Rows(tmp_path / "rows.jsonl"))
    assert embedded == [LENGTH, LENGTH]  # the shared model and the suspect
    assert [row.trial["profile"] for row in made] == ["informed", "paper"]
    assert all(row.outcome["within"] and len(row.trial["probes"]) == 64 for row in made)
    with pytest.raises(InputError, match=f"not a file of {LENGTH + 3} probes"):
        perform(replace(trial, length=LENGTH + 3), Rows(tmp_path / "more.jsonl"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"carrier": "output"}, "is not known"),
        ({"carrier": "feature"}, "read with probes"),
        ({"keys": 0}, "at least 1"),
        ({"suspects": {}}, "needs suspects"),
        ({"levels": (Fraction(1),)}, "between 0 and 1"),
    ],
)
def test_a_trial_that_makes_no_sense_is_refused(shared: Path, changes: dict[str, Any], message: str) -> None:
    trial = small(shared, {"itself": shared})
    with pytest.raises(InputError, match=message):
        replace(trial, **changes)


def test_the_command_counts_and_draws(
    shared: Path, noised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "rows.jsonl")
    command = ["study", "innocents", "--out", out, "--reference", str(shared), "--dataset", "gnss"]
    command += ["--length", str(LENGTH), "--keys", "3", "--families", "1", "--profile", "paper", "--json"]
    assert run([*command, "--suspect", f"with noise={noised}", "--level", "0.2"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "new": 1}
    assert run(["study", "table", out, "--kind", "innocents"]) == 0
    assert "| 0.2 | paper | weight | GNSS, simulated | with noise | 3 |" in capsys.readouterr().out
    assert run([*command, "--suspect", str(noised)]) == 2
    assert run([*command, *(2 * ["--suspect", f"x={noised}"])]) == 2
    assert run([*command, "--suspect", f"x={noised}", "--level", "1/0"]) == 2
    assert run([*command, "--suspect", f"x={noised}", "--profile", "other"]) == 2


@pytest.mark.parametrize(("trials", "level"), [(1, "1/5"), (60, "1/5"), (2000, "1/5"), (2000, "1/1000")])
def test_what_a_budget_allows_is_the_binomial_quantile(trials: int, level: str) -> None:
    chance = Fraction(level)
    assert greatest(trials, chance) == int(stats.binom.ppf(1 - 1e-5, trials, float(chance)))


@pytest.mark.parametrize(("count", "trials"), [(0, 60), (60, 60), (1, 2000), (191, 2000), (1999, 2000)])
def test_the_interval_is_the_one_of_clopper_and_pearson(count: int, trials: int) -> None:
    wanted = stats.binomtest(count, trials).proportion_ci(confidence_level=0.99, method="exact")
    assert interval(count, trials) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
