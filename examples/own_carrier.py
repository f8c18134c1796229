"""A researcher's own carrier: bits in the biases of a model, from enrolment to the judge.

A carrier is one entry in the table, one reader and one writer. The entry names both as `module:name`;
operator and judge each add it. Everything else - codes, certificates, registry, evidence - is as it was.

python examples/own_carrier.py
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import zktrace
from zktrace.carriers import Carrier, add
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.marking.writer import Step, Writer
from zktrace.models import ModelState
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.reader import Reader, Survey, finite
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays

STRENGTH = 0.02  # of the deviation of all biases: what a bit moves


def biases(arrays: Arrays) -> Floats:
    """All biases of a model in one vector, in the order of their names."""
    found = [np.asarray(arrays[name], np.float64) for name in sorted(arrays) if name.endswith(".bias")]
    if not found:
        raise InputError("the model has no biases")
    return np.concatenate(found)


def directions(seed: bytes, length: int, dimension: int) -> Directions:
    return Directions(label="bias", seed=seed, dimension=dimension, count=length)


class BiasReader(Reader):
    """Reads the sum of all biases along secret directions."""

    @classmethod
    def survey(cls, name: str, shared: Arrays, *, length: int, pool: Pool | None, draws: Stream) -> Survey:
        if length > len(biases(shared)):
            raise InputError(f"{length} bits for {len(biases(shared))} biases")
        return Survey(dimension=len(biases(shared)), length=length)

    def project(self, arrays: Arrays) -> Floats:
        found = biases(arrays)
        if len(found) != self.terms.dimension:
            raise InputError(f"the model has {len(found)} biases, the release {self.terms.dimension}")
        return finite(directions(self.terms.seed, self.terms.length, len(found)).project(found))


class BiasWriter(Writer):
    """Moves all biases along the signed sum of the directions."""

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        (name,) = self.carriers
        terms, before = self.job.terms[name], biases(state)
        block = directions(terms.seed, terms.length, terms.dimension).block(0, terms.length)
        moved = before + STRENGTH * before.std() * (2.0 * words[name] - 1.0) @ block
        arrays, at = dict(state), 0
        for each in sorted(arrays):
            if each.endswith(".bias"):
                size = len(arrays[each])
                arrays[each], at = moved[at : at + size].astype(arrays[each].dtype), at + size
        return ModelState.from_arrays(arrays)


ENTRY = Carrier(
    name="bias",
    reads="Each is the sum of all biases along a secret direction.",
    reader=f"{__name__}:BiasReader",
    writers={"informed": f"{__name__}:BiasWriter"},
    length=512,
    colluders=2,
    trained=False,
)


def main() -> None:
    add(ENTRY)
    rng = np.random.default_rng(3)
    model = {f"layer{at}.bias": rng.normal(size=100).astype(np.float32) for at in range(10)}
    with tempfile.TemporaryDirectory() as folder:
        home = zktrace.Workspace.create(Path(folder) / "operator", title="biases", carriers=["bias"])
        for name in ("alpha", "bravo", "charlie"):
            home.enrol(name, zktrace.Credential.new(name).request(home.setup))
        copy = home.dispatch("bravo", home.release(model))
        noisy = {
            name: each + rng.normal(0, 0.01, 100).astype(np.float32) for name, each in copy.arrays.items()
        }
        case = home.trace(noisy)
        print(f"{case.verdict}: {', '.join(case.named)}")
        print(f"upheld: {zktrace.judge(case.evidence, head=home.head, suspect=noisy).named}")


if __name__ == "__main__":
    sys.modules.setdefault("own_carrier", sys.modules[__name__])
    main()
