"""Fine-tuning is training and nothing else."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from learning.synthetic import narrow, same, task
from zktrace.attacks.training import finetune
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.states import state_of

CONFIG = EpisodicConfig(way=5, shot=2, query=2, episodes=3, temperature=8.0, learning_rate=0.01)


def test_finetuning_trains_a_copy_of_the_state() -> None:
    images, labels = task(60)
    before = state_of(narrow())
    seen = []
    after, again = (
        finetune(before, images, labels, CONFIG, np.random.default_rng(1), progress=seen.append)
        for _ in range(2)
    )
    assert same(before, state_of(narrow()))
    assert same(after, again)
    assert not same(before, after)
    assert after.keys() == before.keys()
    assert len(seen) == 6
