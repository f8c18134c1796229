"""For a job of NVIDIA FLARE: `TaskGuard` marks every model that leaves its server (docs/flare.md)."""

from zktrace.federation.flare import TaskGuard

__all__ = ["TaskGuard"]
