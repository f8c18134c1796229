"""What does a guard cost a server, beside copying the arrays? A ResNet-18 of full width, in memory.

Bounds are for the median on a machine that has nothing else to do, of a server that has made some copies
before: the first ones of a process also pay for memory that the system hands out for the first time. Least
times, and the processor time of all threads, say what it takes where others work beside it.
"""

import statistics
import tempfile
from pathlib import Path

import numpy as np

import zktrace
from timing import Row, at_most, least_ms, report, walls_ms
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.models import ModelState, model_digest

WARM_UP = 20
BOUNDS = {"a station's copy of a round": 60, "an aggregate, cleaned": 150}


def measured() -> list[Row]:
    """A station's copy of a round, an aggregate that is cleaned, and what a record adds."""
    arrays = state_of(resnet18(channels=3, rng=np.random.default_rng(0)))
    with tempfile.TemporaryDirectory() as folder:
        home = zktrace.Workspace.create(Path(folder) / "operator", title="a benchmark")
        home.enrol("alpha", zktrace.Credential.new("alpha").request(home.setup))
        guard = home.guard(arrays)
        aggregate = guard.outgoing("alpha", arrays)
        state = ModelState.from_arrays(aggregate)
        calls = {
            "copy the arrays": lambda: {name: each.copy() for name, each in arrays.items()},
            "a station's copy of a round": lambda: guard.outgoing("alpha", arrays),
            "an aggregate, cleaned": lambda: guard.incoming(aggregate),
            "digest of a copy, for the record": lambda: model_digest(state),
        }
        walls = {name: walls_ms(call, warm_up=WARM_UP) for name, call in calls.items()}
        works = {name: least_ms(call, repeat=11) for name, call in calls.items()}
    rows = []
    for name, times in walls.items():
        median = statistics.median(times)
        bound = BOUNDS.get(name)
        rows += [
            Row(name=name, value=median, unit="ms") if bound is None else at_most(name, median, "ms", bound),
            Row(name=f"{name}: least", value=times[0], unit="ms"),
            Row(name=f"{name}: processor time, least", value=works[name], unit="ms"),
        ]
    for name in BOUNDS:
        copies = works[name] / works["copy the arrays"]
        rows.append(Row(name=f"{name}, in copies of the arrays by processor time", value=copies, unit="x"))
    return rows


if __name__ == "__main__":
    report("guard", measured())
