"""What a carrier of a suspect reads, before anything is known of any row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readout:
    """One carrier's values of a suspect, and the shared model's own that were taken off them."""

    carrier: str
    values: Floats
    reference: Floats | None  # none in the paper profile
