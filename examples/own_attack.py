"""A researcher's own attack: what is left of a copy's row, in deviations, as the attack gets stronger.

An attack is any function from arrays to arrays. This one forgets small numbers of every array. A study puts
nothing on record: it reads a suspect, and investigates with the very function that `Workspace.trace` uses.

python examples/own_attack.py
"""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import zktrace
from zktrace.codes.readings import deviations
from zktrace.tracing import Plan, investigate


def forget(arrays: dict[str, np.ndarray], share: float) -> dict[str, np.ndarray]:
    """Every array with the given share of its numbers, the smallest ones, set to their median."""
    found = {}
    for name, array in arrays.items():
        limit = np.quantile(np.abs(array - np.median(array)), share)
        small = np.abs(array - np.median(array)) < limit
        found[name] = np.where(small, np.median(array), array).astype(array.dtype)
    return found


def main() -> None:
    rng = np.random.default_rng(2)
    model = {}
    for layer in range(20):
        model[f"bn{layer}.weight"] = rng.normal(1, 0.1, 64).astype(np.float32)
        model[f"bn{layer}.running_var"] = np.ones(64, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        home = zktrace.Workspace.create(Path(folder) / "operator", title="a study")
        for name in ("alpha", "bravo", "charlie", "delta"):
            home.enrol(name, zktrace.Credential.new(name).request(home.setup))
        release = home.release(model, carriers=["weight"])
        copy = dict(home.dispatch("charlie", release).arrays)
        for share in (0.0, 0.3, 0.6, 0.9):
            reading = release.read(forget(copy, share))
            found = investigate(
                Plan.of(reading, release.rule), release.code, recipients=4, level=Fraction(1, 1000)
            )
            code, values = release.code(reading.readouts[0].carrier), reading.readouts[0].values
            scores = deviations(values, code.biases, code.rows(range(4)), release.rule)
            names = [release.ledger.by_row[row] for row in found.named]
            print(f"{share:.0%} forgotten: charlie's row reads {scores[2]:.1f} deviations, named {names}")


if __name__ == "__main__":
    main()
