"""A rewritten suspect as it was: channels back in their places and at their sizes, against the reference.

What a ResNet computes does not change if channels are permuted, or are written times f > 0 and read divided
by f (a residual stream as one), nor if inside a BatchNorm layer filter and running mean are scaled by g, of
either sign, and scale and running deviation by h. A reader of scales must not depend on such choices:

    gamma = sign(g) h f gamma'    beta = f beta'    mean = g mean'    var + eps = (g h)^2 (var' + eps)
    a filter's row = g row' / f of what it reads

(1) Places. The effective filter gamma W / sqrt(var + eps) and shift of a channel know neither g nor h. From
    the image on, channels are assigned by the cosines of what writes them, inputs already aligned; then again
    by the cosines of all that writes and reads them, until nothing moves.
(2) Sizes. f and g by least squares on the filters that read a channel, rows and columns in turn; they hold
    no mark of the weight carrier. One number a stream is left open: filters that were not scaled decide
    it, or the mean of a layer's scales.
(3) h from the running variances, in layers where it varies more than training on explains.

The reference is the shared model. Rows, keys and directions play no part.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.text import shown
from zktrace.readouts.channels import check_fit, convolutions_of, streams_of
from zktrace.readouts.placing import place
from zktrace.readouts.scales import Arrays
from zktrace.readouts.sizing import resize
from zktrace.readouts.suspects import plain


def align_scales(suspect: Arrays, reference: Arrays) -> dict[str, NDArray[Any]]:
    """The suspect's state with channels placed and scaled as the reference has them; the same function.

    Features change places (and, where they were rescaled, sizes) too. Element types are at least float32.
    """
    given, wanted = plain(suspect), plain(reference)
    streams = streams_of(wanted)
    convolutions = convolutions_of(streams)
    check_fit(given, wanted, convolutions)
    with np.errstate(all="ignore"):  # what overflows is refused below
        placed = place(streams, convolutions, wanted, given)
        made = resize(streams, convolutions, wanted, given, placed)
    for name, array in made.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{shown(name)}: the suspect's numbers cannot be aligned with the reference's")
    return made
