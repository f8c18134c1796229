"""BatchNorm layers written into the convolutions before them, as exporters do: the same outputs, no scales.

W'_c = g_c W_c        b'_c = beta_c + g_c (b_c - mean_c)        g_c = gamma_c / sqrt(var_c + eps)
"""

import numpy as np

from zktrace.attacks.rewrite import EPSILON, PARTS, channel_sets
from zktrace.learning.arrays import Arrays, State


def fold(state: Arrays) -> State:
    """A ResNet of basic blocks without its BatchNorm layers: convolutions have biases instead."""
    made = {name: np.array(array) for name, array in state.items()}
    for conv, bn in (pair for each in channel_sets(state) for pair in each.writers):
        weight = state[f"{conv}.weight"]
        scale, shift, mean, variance = (state[f"{bn}.{part}"].astype(np.float64) for part in PARTS)
        gain = scale / np.sqrt(variance + EPSILON)
        bias = state[f"{conv}.bias"].astype(np.float64) if f"{conv}.bias" in state else 0.0
        made[f"{conv}.weight"] = (weight * gain[:, None, None, None]).astype(weight.dtype)
        made[f"{conv}.bias"] = (shift + gain * (bias - mean)).astype(weight.dtype)
        for part in (*PARTS, "num_batches_tracked"):
            made.pop(f"{bn}.{part}", None)
    return made
