"""A source gives the same samples and the same partition to whoever loads it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zktrace.errors import InputError
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
from zktrace.learning.data.gnss.settings import config_named
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
