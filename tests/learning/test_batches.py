"""Which samples a step learns from: every one once a pass, drawn when they are needed, shown moved about."""

from itertools import chain, islice

import numpy as np
import pytest
import torch
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.batches import SHIFT, batch, moved_about, passes, steps_of


@pytest.mark.parametrize("count", range(1, 14))
@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("samples", [0, 2, 7])
@pytest.mark.parametrize("least", [1, 2, 3])
def test_passes_are_parts_of_permutations(count: int, size: int, samples: int, least: int) -> None:
    """Against the plain loop over slices."""
    rng = np.random.default_rng(count)
    wanted = []
    for _ in range(3):
        order = rng.permutation(count)
        order = order[:samples] if samples else order
        parts = [order[at : at + size] for at in range(0, len(order), size)]
        wanted.append([each.tolist() for each in parts if len(each) >= least])
    if not wanted[0]:
        with pytest.raises(InputError, match="give no batch"):
            steps_of(count, size, samples=samples, least=least)
        with pytest.raises(InputError, match="give no batch"):
            next(passes(count, size, rng, samples=samples, least=least))
        return
    assert steps_of(count, size, samples=samples, least=least) == len(wanted[0])
    found = passes(count, size, np.random.default_rng(count), samples=samples, least=least)
    assert [each.tolist() for each in islice(found, 3 * len(wanted[0]))] == [*chain(*wanted)]


def test_nothing_is_drawn_before_it_is_needed() -> None:
    """Between two passes the generator says all: that is where runs are saved."""
    rng, plain = np.random.default_rng(4), np.random.default_rng(4)
    found = passes(6, 3, rng)
    assert rng.bit_generator.state == plain.bit_generator.state
    next(found), next(found)
    plain.permutation(6)
    assert rng.bit_generator.state == plain.bit_generator.state


def test_a_batch_is_a_copy_in_single_precision() -> None:
    images = np.arange(5 * 1 * 2 * 2, dtype=np.float64).reshape(5, 1, 2, 2)
    found = batch(images, np.array([3, 1]))
    assert found.dtype == torch.float32
    assert found.numpy().tolist() == images[[3, 1]].tolist()
    found[:] = 0
    assert images[3].any()


def test_images_are_shifted_alike_and_some_are_mirrored() -> None:
    images = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8).repeat(20, 1, 1, 1)
    found = moved_about(images, np.random.default_rng(3))
    assert found.shape == images.shape
    wide = functional.pad(images, (SHIFT, SHIFT, SHIFT, SHIFT), mode="reflect")
    mirrored = functional.pad(images.flip(3), (SHIFT, SHIFT, SHIFT, SHIFT), mode="reflect")
    places = [(i, j) for i in range(2 * SHIFT + 1) for j in range(2 * SHIFT + 1)]
    kinds = []
    for at, each in enumerate(found):
        hits = {
            (name, i, j)
            for name, source in (("as it is", wide), ("mirrored", mirrored))
            for i, j in places
            if torch.equal(source[at, :, i : i + 8, j : j + 8], each)
        }
        assert hits
        kinds.append(hits)
    shifts = [{(i, j) for _, i, j in hits} for hits in kinds]
    assert set.intersection(*shifts)
    assert {name for hits in kinds for name, _, _ in hits} == {"as it is", "mirrored"}
    again = moved_about(images, np.random.default_rng(3))
    assert torch.equal(found, again)
