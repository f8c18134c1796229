"""Every test of this room runs with one torch thread."""

from one_thread import one_thread

__all__ = ["one_thread"]
