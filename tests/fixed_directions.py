"""Directions that do not depend on when the log was written: a test of marks then has one outcome."""

from collections.abc import Iterator

import pytest

from zktrace.derivation.promises import direction_seed


def _fixed(seed: bytes, _root: bytes, carrier: str) -> bytes:
    return direction_seed(seed, bytes(32), carrier)


@pytest.fixture(scope="module", autouse=True)
def fixed_directions() -> Iterator[None]:
    """For operator and judge alike; what the log's root does to them is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patched:
        for place in ("zktrace.registry.custody", "zktrace.court.steps.openings"):
            patched.setattr(f"{place}.direction_seed", _fixed)
        yield
