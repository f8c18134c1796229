"""Variants: each changes what its name says and nothing else; and the study of stressors, end to end."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.errors import InputError
from zktrace.learning.data.gnss_dataset import GnssSpec
from zktrace.learning.episodes import can_form
from zktrace.learning.presets import Preset, load_preset
from zktrace.studies.federation import FederationTrial
from zktrace.studies.federation import batches as plain_batches
from zktrace.studies.identity_tables import noniid_table, stressors_table, survival_table
from zktrace.studies.identity_words import noniid_words, stressors_words, survival_words
from zktrace.studies.rows import Rows
from zktrace.studies.runner import run_study
from zktrace.studies.variants import VARIANTS, batches, stressed

STUDY = load_preset("study")


def changed(name: str, dataset: str = "gnss") -> dict[str, object]:
    """What a variant has another value for, by section and key."""
    base = replace(STUDY, data=replace(STUDY.data, dataset=dataset)).as_dict()
    (trial,) = stressed(STUDY, [name], dataset, 42)
    return {
        f"{section}.{key}": value
        for section, values in trial.preset.as_dict().items()
        for key, value in values.items()
        if base[section].get(key) != value
    }


def test_the_names() -> None:
    assert list(VARIANTS) == [
        "median",
        "shift",
        "alpha-0.1",
        "alpha-0.2",
        "alpha-0.25",
        "alpha-0.5",
        "participation-0.5",
        "participation-0.3",
        "stations-5",
        "stations-20",
        "stations-40",
        "stations-80",
        "stations-120",
    ]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("median", {"federation.aggregation": "median"}),
        ("shift", {"data.receiver_shift": True}),
        ("alpha-0.25", {"federation.alpha": 0.25}),
        ("participation-0.3", {"federation.participation": 0.3}),
        ("stations-5", {"federation.clients": 5}),
        ("stations-40", {"federation.clients": 40, "data.samples": 96_000}),
        ("stations-80", {"federation.clients": 80, "data.samples": 96_000, "episodes.query": 5}),
    ],
)
def test_a_variant_changes_what_its_name_says(name: str, wanted: dict[str, object]) -> None:
    assert changed(name) == wanted


def test_cifar10_does_not_grow() -> None:
    assert changed("stations-40", "cifar10") == {"federation.clients": 40}
    assert changed("stations-120", "cifar10") == {"federation.clients": 120, "episodes.query": 5}


@pytest.mark.parametrize("count", [20, 40, 80, 120])
def test_nearly_all_stations_can_form_episodes(count: int) -> None:
    """With the samples as they are, a third or more of the larger rosters could not."""
    (trial,) = stressed(STUDY, [f"stations-{count}"], "gnss", 42)

    def able(samples: int) -> int:
        spec = GnssSpec(total=samples, seed=42, imbalance=STUDY.data.imbalance, stations=count)
        labels, shape = spec.labels(), trial.preset.episodes.shape
        return sum(can_form(labels[shard], shape) for shard in spec.plan().shards())

    assert able(trial.preset.data.samples) >= 0.97 * count
    assert able(STUDY.data.samples) < able(trial.preset.data.samples)


def test_pretraining_is_shared_where_it_cannot_differ() -> None:
    def start(name: str, dataset: str, seed: int = 42) -> str:
        return stressed(STUDY, [name], dataset, seed)[0].start

    plain = FederationTrial(preset=STUDY, seed=42)
    assert start("median", "gnss") == start("participation-0.5", "gnss") == plain.start
    assert len({start(name, "gnss") for name in ("median", "shift", "alpha-0.1", "stations-5")}) == 4
    assert start("median", "cifar10") == start("alpha-0.1", "cifar10") == start("stations-80", "cifar10")
    assert start("median", "cifar10") != start("median", "cifar10", 43)


def test_what_there_is_no_variant_of_is_said() -> None:
    assert stressed(STUDY, ["shift"], "cifar10", 42) == []
    with pytest.raises(InputError, match="no variant 'noise'; known: median, shift"):
        batches(STUDY, ["noise"], ["gnss"], [1], work=Path("w"))
    with pytest.raises(InputError, match="variant shift is of simulated GNSS"):
        batches(STUDY, ["median", "shift"], ["cifar10"], [1], work=Path("w"))
    both = batches(STUDY, ["median", "shift"], ["gnss", "cifar10"], [1], work=Path("w"))
    assert [each.size for each in both] == [2, 1]


def tiny() -> Preset:
    smoke = load_preset("smoke")
    return replace(
        smoke,
        data=replace(smoke.data, samples=600),
        model=replace(smoke.model, width=4),
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )


def test_the_study_end_to_end(tmp_path: Path) -> None:
    work, rows = tmp_path / "work", Rows(tmp_path / "rows.jsonl")
    (plain,) = plain_batches(tiny(), ["gnss"], [5], work=work)
    (batch,) = batches(tiny(), ["median", "shift", "alpha-0.1"], ["gnss"], [5], work=work)
    assert (plain.study, batch.study, batch.size) == ("federation", "stressors", 3)
    ran = run_study([plain, batch], rows, workers=1)
    assert ran.failures == []
    found = {row.trial.get("variant", row.outcome["marked"]): row for row in ran.made}
    assert list(found) == [True, False, "median", "shift", "alpha-0.1"]
    median = work / batch.runs[0].folder / "pretraining.safetensors"
    assert median.read_bytes() == (work / plain.runs[0].folder / "pretraining.safetensors").read_bytes()
    for row in found.values():
        assert row.outcome["features"]["samples"] == 60
        recall = row.outcome["features"]["recall"]
        assert row.outcome["features"]["mean_recall"] == pytest.approx(sum(recall.values()) / len(recall))
        assert row.outcome["features"]["far_proxy"] == pytest.approx(
            sum(1 - each for each in recall.values()) / len(recall)
        )
        assert row.outcome["spread"]["gamma"] > 0
    marked, control = found[True].outcome, found[False].outcome
    assert marked["identity"]["trained"] == marked["identity"]["margins"]["stations"] == 3
    assert marked["identity"]["margins"]["right"] > 0.9  # a station's own bits, just written
    assert control["identity"]["margins"] is None
    assert marked["spread"]["gamma"] > control["spread"]["gamma"]
    skewed = found["alpha-0.1"].outcome
    assert skewed["never_trained"] == [0, 1, 2]
    assert skewed["identity"]["attribution_trained"] is None
    assert run_study([plain, batch], rows, workers=1).made == []
    made = rows.read()
    assert "| GNSS, simulated | receiver shift | 1 |" in stressors_table(made)
    assert "| GNSS, simulated | 3 | 1 | 0.16 |" in survival_table(made)
    assert "| GNSS, simulated | alpha = 0.1, q = 1 | 1 | 0.0 (0.5) |" in noniid_table(made)
    for words in (stressors_words, survival_words, noniid_words):
        assert "simulated GNSS" in words(made)
