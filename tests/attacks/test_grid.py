"""The grids are the paper's, and every point does what the attack of its name does."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from attacks.lived import lived
from learning.synthetic import same, task
from zktrace.attacks import scales, weights
from zktrace.attacks.distill import DistillConfig, distill
from zktrace.attacks.flips import flip_bits, guessed_bits
from zktrace.attacks.grid import FAMILIES, GRIDS, GUESSES, TRAINED, Attack, Equipment, grid
from zktrace.attacks.training import finetune
from zktrace.errors import InputError
from zktrace.learning.arrays import State
from zktrace.learning.configs import EpisodicConfig

IMAGES, LABELS = task(60)
EPISODES = EpisodicConfig(way=5, shot=2, query=2, episodes=3, temperature=8.0, learning_rate=0.01)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def equipment() -> Equipment:
    return Equipment(rng=rng(), samples=lambda: (IMAGES, LABELS), episodes=EPISODES)


def copy() -> State:
    return lived(width=4)


DONE: dict[str, Callable[[], State]] = {
    "none": copy,
    "prune": lambda: scales.prune_scales(copy(), share=0.5),
    "structured": lambda: scales.prune_scales(copy(), share=0.5, structured=True),
    "noise": lambda: scales.noise_scales(copy(), sigma=2.0, rng=rng()),
    "quantise": lambda: scales.quantise_scales(copy(), bits=2),
    "prune-quantise": lambda: scales.quantise_scales(scales.prune_scales(copy(), share=0.5), bits=4),
    "pgd": lambda: flip_bits(copy(), guessed_bits(copy(), GUESSES, rng()), norm="linf", radius=0.1),
    "reset": lambda: scales.reset_scales(copy(), stages=["layer3", "layer4"]),
    "finetune": lambda: finetune(copy(), IMAGES, LABELS, replace(EPISODES, episodes=2), rng()),
    "distill": lambda: distill([copy()], IMAGES, LABELS, DistillConfig(epochs=1), rng()),
    "prune-all": lambda: weights.prune_matrices(copy(), share=0.5),
    "noise-all": lambda: weights.noise_matrices(copy(), sigma=0.05, rng=rng()),
    "quantise-all": lambda: scales.quantise_all(copy(), bits=4),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_an_attack_of_this_room(family: str) -> None:
    attack = grid("short", [family], lengths={"finetune": [2], "distill": [1]})[0]
    made = attack(copy(), equipment())
    assert same(made, DONE[family]())
    assert same(made, copy()) == (family == "none")


def test_the_papers_grids() -> None:
    points = GRIDS["paper"]
    assert set(points) == set(GRIDS["short"]) == set(FAMILIES)
    for family in ("prune", "structured"):
        shares = [each["share"] for each in points[family]]
        assert (min(shares), max(shares), sorted(shares)) == (0.05, 0.9, shares)
    assert [each["sigma"] for each in points["noise"]] == [0.01, 0.05, 0.1, 0.5, 1.0, 2.0]
    assert [each["bits"] for each in points["quantise"]] == [16, 8, 6, 4, 3, 2]
    assert len({tuple(each.items()) for each in points["prune-quantise"]}) == 6
    assert {(each["norm"], each["epsilon"]) for each in points["pgd"]} == {
        (norm, epsilon) for norm in ("linf", "l2") for epsilon in (0.05, 0.1, 0.2)
    }
    stages = [each["stages"] for each in points["reset"]]
    assert {len(each) for each in stages} >= {1, 5}
    assert ["layer3", "layer4"] in stages
    for family, ends in (("finetune", (10, 500)), ("distill", (5, 100))):
        lengths = [each[TRAINED[family]] for each in points[family]]
        assert (lengths[0], lengths[-1], sorted(lengths)) == (*ends, lengths)


def test_some_families_and_other_lengths() -> None:
    some = grid("paper", ["distill", "none"], lengths={"distill": [1, 2]})
    assert [each.facts() for each in some] == [
        {"family": "none", "parameters": {}},
        {"family": "distill", "parameters": {"epochs": 1}},
        {"family": "distill", "parameters": {"epochs": 2}},
    ]
    assert [each.trained for each in some] == [False, True, True]


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="no grid 'long'"):
        grid("long")
    with pytest.raises(InputError, match="no attack 'magic'"):
        grid("short", ["magic"])
    with pytest.raises(InputError, match="no attack 'magic'"):
        Attack(family="magic", parameters={})
