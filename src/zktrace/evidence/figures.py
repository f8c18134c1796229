"""The figures of a case: scores down, thresholds and chances up."""

from zktrace.primitives.rounding import chance, down, up

__all__ = ["chance", "down", "up"]
