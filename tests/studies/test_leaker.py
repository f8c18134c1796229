"""A leaker's samples and the server's: apart, unless the study says otherwise."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from federation import small
from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec
from zktrace.learning.data.proxy import proxy_pool
from zktrace.learning.data.source import DataSource
from zktrace.studies.leaker import leakers_samples


def texts(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


@pytest.fixture(params=["validation", "none"])
def spec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    """A run whose split has a validation part, or none, as CIFAR-10's."""
    made = small.spec()
    if request.param == "none":
        dataset, plan = made.source.load()
        merged = np.sort(np.concatenate([plan.split.train, plan.split.validation]))
        split = replace(plan.split, train=merged, validation=np.zeros(0, np.int64))
        monkeypatch.setattr(DataSource, "load", lambda _: (dataset, replace(plan, split=split)))
    return made


def test_the_leaker_holds_nothing_of_the_servers(spec: RunSpec) -> None:
    pool = proxy_pool(spec.source, spec.preset.episodes)
    dataset, plan = spec.source.load()
    images, labels = leakers_samples(spec, samples=0, rng=np.random.default_rng(1))
    assert len(pool.images)
    assert not texts(images) & texts(pool.images)
    everything = texts(dataset.take(plan.split.train)[0])
    assert texts(images) == everything - texts(pool.images)
    assert len(images) == len(labels)
    few, _ = leakers_samples(spec, samples=25, rng=np.random.default_rng(1))
    assert len(few) == 25
    assert texts(few) < texts(images)


def test_inside_the_servers_take_the_place_of_as_many(spec: RunSpec) -> None:
    pool = proxy_pool(spec.source, spec.preset.episodes)
    count = len(pool.images) + 30
    images, labels = leakers_samples(spec, samples=count, rng=np.random.default_rng(1), inside=True)
    assert len(images) == len(labels) == count
    assert texts(pool.images) < texts(images)
    with pytest.raises(InputError, match="samples for the leaker"):
        leakers_samples(spec, samples=len(pool.images) - 1, rng=np.random.default_rng(1), inside=True)
    with pytest.raises(InputError, match="samples for the leaker"):
        leakers_samples(spec, samples=10_000, rng=np.random.default_rng(1))


def test_the_server_holds_the_validation_part_or_a_fifth(spec: RunSpec) -> None:
    _, plan = spec.source.load()
    pool = proxy_pool(spec.source, spec.preset.episodes)
    apart = len(plan.split.validation)
    assert len(pool.images) == (apart or len(plan.split.train) // 5)
    assert ("validation" if apart else "training") in pool.note
    few = proxy_pool(spec.source, spec.preset.episodes, largest=7)
    assert len(few.images) == 7
    assert texts(few.images) < texts(pool.images)
