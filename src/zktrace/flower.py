"""For a Flower app: `Guarded` marks every model that leaves its server (docs/guard.md)."""

from zktrace.federation.flower.guarded import Guarded

__all__ = ["Guarded"]
