"""The client's half: it fits a matrix to data of its own, and knows nothing of marks."""

import argparse
from pathlib import Path

import numpy as np
import nvflare.client as flare


def main() -> None:
    """Train what arrives until the job ends, and keep a copy of it, as whoever leaks one would."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--seen", type=Path, required=True)
    seen = ask.parse_args().seen
    flare.init()
    site = flare.get_site_name()
    rng = np.random.default_rng(sum(site.encode()))
    while flare.is_running():
        model = flare.receive()
        weights = np.asarray(model.params["numpy_key"])
        np.savez(seen / f"{site}-{model.current_round}.npz", numpy_key=weights)
        inputs = rng.normal(size=(64, weights.shape[0])).astype(np.float32)
        wanted = inputs.sum(axis=1, keepdims=True) * np.float32(0.01)
        trained = 0.99 * weights - 1e-3 * inputs.T @ (inputs @ weights - wanted) / len(inputs)
        flare.send(flare.FLModel(params={"numpy_key": trained.astype(np.float32)}))


if __name__ == "__main__":
    main()
