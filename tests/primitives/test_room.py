"""Many arrays in one piece of memory."""

import numpy as np

from zktrace.primitives.room import room_for


def test_arrays_have_their_sizes_and_types_and_do_not_overlap() -> None:
    wanted = {
        "a": (5, np.dtype(np.float32)),
        "b": (3, np.dtype(np.float64)),
        "none": (0, np.dtype(np.float64)),
        "c": (7, np.dtype(np.float16)),
    }
    found = room_for(wanted)
    assert {name: (each.size, each.dtype) for name, each in found.items()} == wanted
    for number, each in enumerate(found.values()):
        each[:] = number
    assert [each.tolist() for each in found.values()] == [[0.0] * 5, [1.0] * 3, [], [3.0] * 7]
    assert all(each.flags.writeable and each.flags.aligned for each in found.values())


def test_nothing_needs_no_room() -> None:
    assert room_for({}) == {}
