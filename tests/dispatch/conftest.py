"""Every test of this room runs with one torch thread, and with directions that are always the same."""

from fixed_directions import fixed_directions
from one_thread import one_thread

__all__ = ["fixed_directions", "one_thread"]
