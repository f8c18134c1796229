"""Episodes never leak, are formed exactly when they can be, and their loss is the formula's."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zktrace.errors import InputError
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.episodes import (
    EpisodeSampler,
    can_form,
    episode_outcome,
    prototype_logits,
    prototypes,
)

SHAPES = st.builds(EpisodeShape, way=st.integers(2, 5), shot=st.integers(1, 4), query=st.integers(1, 5))
LABELS = st.lists(st.integers(-3, 5), max_size=120)


@given(LABELS, SHAPES, st.integers(0, 2**32))
def test_an_episode_is_what_it_says(labels: list[int], shape: EpisodeShape, seed: int) -> None:
    counts = [labels.count(k) for k in set(labels)]
    assert can_form(labels, shape) == (sum(n >= shape.shot + shape.query for n in counts) >= shape.way)
    if not can_form(labels, shape):
        with pytest.raises(InputError, match=f"no {shape} can be formed: . of the needed {shape.way}"):
            EpisodeSampler(labels, shape)
        return
    rng = np.random.default_rng(seed)
    sampler = EpisodeSampler(labels, shape)
    for _ in range(3):
        episode = sampler.draw(rng)
        assert len(set(episode.classes.tolist())) == shape.way
        assert episode.support.shape == (shape.way, shape.shot)
        assert episode.query.shape == (shape.way, shape.query)
        assert not set(episode.support.ravel()) & set(episode.query.ravel())
        assert len(set(episode.samples.tolist())) == len(episode.samples) == shape.images
        found = np.array(labels)
        assert (found[episode.support] == episode.classes[:, None]).all()
        assert (found[episode.query] == episode.classes[:, None]).all()


def test_every_class_and_sample_gets_its_turn() -> None:
    labels = np.repeat([4, 7, 9], [6, 5, 2])
    sampler = EpisodeSampler(labels, EpisodeShape(way=2, shot=2, query=2))
    rng = np.random.default_rng(0)
    drawn = [sampler.draw(rng) for _ in range(200)]
    assert {int(k) for each in drawn for k in each.classes} == {4, 7}  # 9 has too few
    assert {int(i) for each in drawn for i in each.support.ravel()} == set(range(11))


def test_draws_depend_on_the_generator_only() -> None:
    labels = np.arange(100) % 5
    sampler = EpisodeSampler(labels, EpisodeShape(way=3, shot=2, query=2))
    one, two = (sampler.draw(np.random.default_rng(8)).samples for _ in range(2))
    assert (one == two).all()


def test_the_shortage_is_named() -> None:
    with pytest.raises(
        InputError, match=r"1 of the needed 2 classes have 3 samples \(samples by class {1: 3, 5: 2}\)"
    ):
        EpisodeSampler([1, 1, 1, 5, 5], EpisodeShape(way=2, shot=1, query=2))
    with pytest.raises(InputError, match="one row of integers"):
        EpisodeSampler([0.5, 1.5], EpisodeShape())
    assert not can_form([], EpisodeShape())


@pytest.mark.parametrize("wrong", [{"way": 1}, {"shot": 0}, {"query": 0}])
def test_an_impossible_shape_cannot_exist(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        EpisodeShape(**wrong)


@given(SHAPES, st.integers(0, 2**32), st.sampled_from([1.0, 0.5, 64.0]))
def test_the_loss_is_that_of_plain_loops(shape: EpisodeShape, seed: int, temperature: float) -> None:
    features = torch.randn(
        shape.images, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    values = features.tolist()
    support = values[: shape.way * shape.shot]
    queries = values[shape.way * shape.shot :]
    centres = [
        [sum(support[k * shape.shot + j][i] for j in range(shape.shot)) / shape.shot for i in range(7)]
        for k in range(shape.way)
    ]
    total, right = 0.0, 0
    for at, query in enumerate(queries):
        far = [sum((q - c) ** 2 for q, c in zip(query, centre, strict=True)) for centre in centres]
        logits = [-each / temperature for each in far]
        truth = at // shape.query
        total += math.log(sum(math.exp(each) for each in logits)) - logits[truth]
        right += max(range(shape.way), key=logits.__getitem__) == truth
    outcome = episode_outcome(features, shape, temperature)
    assert outcome.loss.item() == pytest.approx(total / len(queries), rel=1e-12)
    assert outcome.accuracy == pytest.approx(right / len(queries), rel=1e-12)


def test_prototypes_and_logits_have_the_formulas_shape() -> None:
    support = torch.arange(12.0).reshape(2, 3, 2)
    centres = prototypes(support)
    assert centres.tolist() == [[2.0, 3.0], [8.0, 9.0]]
    assert prototype_logits(torch.tensor([[2.0, 4.0]]), centres).tolist() == [[-1.0, -61.0]]
