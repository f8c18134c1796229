"""Names for the arrays that training is about. Nothing here needs torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]  # a model by names, to be read
State = dict[str, Array]  # the same, one's own
Images = NDArray[np.float32]  # (n, channels, height, width)
Labels = NDArray[np.int64]  # (n,)
Indices = NDArray[np.int64]  # positions of samples
