"""What does a guard cost a server, beside copying the arrays? A ResNet-18 of full width, in memory."""

import tempfile
from pathlib import Path

import numpy as np

import zktrace
from timing import Row, at_most, median_ms, report
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.models import ModelState, model_digest


def measured() -> list[Row]:
    """A station's copy of a round, an aggregate that is cleaned, and what a record adds."""
    arrays = state_of(resnet18(channels=3, rng=np.random.default_rng(0)))
    with tempfile.TemporaryDirectory() as folder:
        home = zktrace.Workspace.create(Path(folder) / "operator", title="a benchmark")
        home.enrol("alpha", zktrace.Credential.new("alpha").request(home.setup))
        guard = home.guard(arrays)
        copy = median_ms(lambda: {name: each.copy() for name, each in arrays.items()})
        sent = median_ms(lambda: guard.outgoing("alpha", arrays))
        aggregate = guard.outgoing("alpha", arrays)
        cleaned = median_ms(lambda: guard.incoming(aggregate))
        state = ModelState.from_arrays(aggregate)
        digest = median_ms(lambda: model_digest(state))
    return [
        Row(name="copy the arrays", value=copy, unit="ms"),
        at_most("a station's copy of a round", sent, "ms", 60),
        at_most("an aggregate, cleaned", cleaned, "ms", 150),
        Row(name="a station's copy, in copies of the arrays", value=sent / copy, unit="x"),
        Row(name="an aggregate, in copies of the arrays", value=cleaned / copy, unit="x"),
        Row(name="digest of a copy, for the record", value=digest, unit="ms"),
    ]


if __name__ == "__main__":
    report("guard", measured())
