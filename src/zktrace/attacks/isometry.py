"""A random rotation behind a frozen backbone: other features, the same distances (`sub:attack-protocol`)."""

import numpy as np
from numpy.typing import NDArray

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


def orthogonal(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """An orthogonal matrix, every one as likely as any other."""
    q, r = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(q * np.where(np.diagonal(r) < 0, -1.0, 1.0), dtype=np.float64)
