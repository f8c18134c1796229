"""Images of the server's own, by which networks are read and copies trained."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Server-held samples that copies are trained on, and what episodes of them look like."""

    images: NDArray[np.float32]  # (n, channels, height, width)
    labels: NDArray[np.int64]
    episodes: dict[str, Any]  # the fields of an EpisodicConfig
    note: str  # where the samples come from

    def others(self, probes: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which images are none of these."""
        known = {each.tobytes() for each in probes}
        return np.array([each.tobytes() not in known for each in np.asarray(self.images)], dtype=bool)
