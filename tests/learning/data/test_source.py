"""A source gives the same samples and the same partition to whoever loads it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec, preset_facts
from zktrace.learning.data import (
    Cifar10Source,
    Dataset,
    GnssSource,
    GnssSpec,
    HeldSource,
    SplitPlan,
    load_gnss,
    make_plan,
    source_of,
)
from zktrace.learning.data.gnss import Simulator
from zktrace.learning.data.gnss.settings import config_named
from zktrace.learning.data.proxy import proxy_pool
from zktrace.learning.presets import load_preset

SMALL = replace(load_preset("smoke").data, samples=60, domain_shift=True, setting="B", imbalance=1.5)


def own(*, split: bool = False) -> Dataset:
    """Somebody's own images."""
    labels = np.arange(40) % 4
    images = np.random.default_rng(0).standard_normal((40, 3, 8, 8)).astype(np.float32)
    plan = make_plan(labels, classes=4, stations=2, seed=77)
    return Dataset(
        name="own",
        images=images,
        labels=labels,
        class_names=("a", "b", "c", "d"),
        note="own images",
        split=plan.split if split else None,
    )


def alike(first: SplitPlan, second: SplitPlan) -> bool:
    return np.array_equal(first.station_of, second.station_of) and all(
        np.array_equal(part, second.split.parts()[name]) for name, part in first.split.parts().items()
    )


def test_simulated_samples_are_those_of_the_benchmark() -> None:
    """Every value of the preset arrives."""
    dataset, plan = source_of(SMALL, seed=3, stations=4, alpha=5.0).load()
    config = config_named("B", domain_shift=True)
    wanted, by = load_gnss(GnssSpec(total=60, seed=3, imbalance=1.5, stations=4, alpha=5.0, config=config))
    assert np.array_equal(dataset.images, wanted.images)
    assert np.array_equal(dataset.labels, wanted.labels)
    assert alike(plan, by)


def test_a_receiver_shift_arrives_at_the_simulator() -> None:
    shifted = source_of(replace(SMALL, receiver_shift=True), seed=3, stations=4, alpha=5.0).load()[0]
    plain = source_of(SMALL, seed=3, stations=4, alpha=5.0).load()[0]
    config = config_named("B", domain_shift=True, receiver_shift=True)
    wanted, _ = load_gnss(GnssSpec(total=60, seed=3, imbalance=1.5, stations=4, alpha=5.0, config=config))
    assert np.array_equal(shifted.images, wanted.images)
    assert not np.array_equal(shifted.images, plain.images)
    assert np.array_equal(shifted.labels, plain.labels)


def test_a_source_is_loaded_once_and_an_equal_one_with_it() -> None:
    source, again = (source_of(SMALL, seed=3, stations=4, alpha=5.0) for _ in range(2))
    assert source == again
    assert source.load() is again.load()
    other = source_of(SMALL, seed=4, stations=4, alpha=5.0)
    assert not np.array_equal(other.load()[0].images, source.load()[0].images)


def test_a_cache_changes_no_sample(tmp_path: Path) -> None:
    source = source_of(SMALL, seed=3, stations=4, alpha=5.0)
    kept = source_of(SMALL, seed=3, stations=4, alpha=5.0, cache=tmp_path)
    assert isinstance(kept, GnssSource)
    assert np.array_equal(kept.load()[0].images, source.load()[0].images)
    assert list(tmp_path.iterdir())


def test_cifar10_needs_its_folder(tmp_path: Path) -> None:
    data = replace(SMALL, dataset="cifar10")
    source = source_of(data, seed=3, stations=4, alpha=5.0, cifar10=tmp_path)
    assert source == Cifar10Source(seed=3, stations=4, alpha=5.0, folder=tmp_path)
    with pytest.raises(InputError, match="--cifar10"):
        source_of(data, seed=3, stations=4, alpha=5.0).load()


@pytest.mark.parametrize("split", [False, True])
def test_own_images_are_split_and_dealt_out(split: bool) -> None:
    """By the split they come with, or by one of the seed."""
    dataset = own(split=split)
    source = HeldSource(dataset=dataset, seed=5, stations=2, alpha=2.0)
    found, plan = source.load()
    assert found is dataset
    wanted = make_plan(dataset.labels, classes=4, stations=2, alpha=2.0, seed=5, split=dataset.split)
    assert alike(plan, wanted)
    for part, places in plan.split.parts().items():
        images, labels = source.samples(part)  # type: ignore[arg-type]
        assert np.array_equal(images, dataset.images[places])
        assert np.array_equal(labels, dataset.labels[places])


def recorded(folder: Path, *, tested: bool) -> Path:
    """A campaign of 40 recordings of two kinds; all of them for training, or the last eight for tests."""
    made = Simulator(seed=4).recordings(np.arange(40), np.arange(40) % 2, 0)
    folder.mkdir()
    for number, array in enumerate(made.recordings):
        np.save(folder / f"{number}.npy", array)
    lines = [f"{number}.npy,{'ab'[number % 2]}\n" for number in range(40)]
    (folder / "train.csv").write_text("file,label\n" + "".join(lines[: 32 if tested else 40]))
    if tested:
        (folder / "test.csv").write_text("file,label\n" + "".join(lines[32:]))
    return folder


@pytest.mark.parametrize("tested", [False, True])
def test_recordings_that_a_preset_names_are_split_dealt_out_and_lent_to_a_server(
    tested: bool, tmp_path: Path
) -> None:
    """By their own split, or by one of the seed; what a server holds is its proxy data."""
    recorded(tmp_path / "campaign", tested=tested)
    (tmp_path / "mine.toml").write_text(
        'base = "study"\n[data]\ndataset = "recordings"\nfolder = "campaign"\n'
    )
    preset = load_preset(tmp_path / "mine.toml")
    source = source_of(preset.data, seed=5, stations=2, alpha=2.0)
    dataset, plan = source.load()
    assert (len(dataset), dataset.class_names, dataset.shape) == (40, ("a", "b"), (4, 32, 32))
    assert [len(part) for part in plan.split.parts().values()] == ([32, 0, 8] if tested else [32, 4, 4])
    assert sum(len(shard) for shard in plan.shards()) == 32
    pool = proxy_pool(source, preset.episodes)
    assert len(pool.labels) == (32 // 5 if tested else 4)
    assert "CRPA recordings" in pool.note
    assert source == source_of(preset.data, seed=5, stations=2, alpha=2.0)


def test_runs_on_the_same_recordings_are_the_same_wherever_those_lie(tmp_path: Path) -> None:
    here, there = (recorded(tmp_path / name, tested=True) for name in ("here", "there"))
    study = load_preset("study")

    def digest(folder: Path) -> str:
        data = replace(study.data, dataset="recordings", folder=str(folder))
        return RunSpec(preset=replace(study, data=data), seed=1, words=()).digest()

    assert digest(here) == digest(there)
    with open(there / "train.csv", "a") as handle:
        handle.write("more.npy,a\n")
    assert digest(here) != digest(there)


def test_recordings_leave_other_runs_what_they_were() -> None:
    """A folder that is not used is no part of a run: rows on record keep their trials."""
    study = load_preset("study")
    data = replace(study.data, folder="/anywhere", full_scale=2.0)
    assert preset_facts(replace(study, data=data)) == preset_facts(study) == study.as_dict()
    assert "folder" not in study.as_dict()["data"]
