"""A random rotation behind a frozen backbone: other features, the same distances (`sub:attack-protocol`)."""

import numpy as np

from zktrace.attacks.rotation import orthogonal
from zktrace.learning.arrays import Arrays, State
from zktrace.learning.backbone import backbone_of


def isometry(state: Arrays, rng: np.random.Generator) -> State:
    """The same model with a random orthogonal map as its last layer `fc`, after one it may have already."""
    turn = orthogonal(backbone_of(state).features, rng)
    made = {name: np.array(array) for name, array in state.items()}
    if "fc.weight" in state:
        made["fc.weight"] = (turn @ state["fc.weight"]).astype(state["fc.weight"].dtype)
        if "fc.bias" in state:
            made["fc.bias"] = (turn @ state["fc.bias"]).astype(state["fc.bias"].dtype)
    else:
        made["fc.weight"] = turn.astype(np.float32)
    return made
