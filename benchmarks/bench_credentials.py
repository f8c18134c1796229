"""How fast and how small are credentials, beside the per-round reference?"""

import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from timing import Row, at_least, at_most, median_ms, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from credentials import reference  # the per-round reference that the tests trust
from zktrace.credentials import DEFAULT, MessageBinding, Proof, PublicKey, SecretKey, prove, verify
from zktrace.models import model_digest, open_model, save_model


def credential_rows() -> list[Row]:
    """Sizes and times at the paper's parameters; keys are read from their bytes in every run."""
    binding = MessageBinding.of(b"benchmark")
    secret = SecretKey.generate().to_bytes()
    public = SecretKey.from_bytes(secret).public.to_bytes()
    proofs = [prove(SecretKey.from_bytes(secret), binding).to_bytes() for _ in range(20)]
    data = proofs[0]

    def run_prove() -> None:
        prove(SecretKey.from_bytes(secret), binding).to_bytes()

    def run_verify() -> None:
        verify(PublicKey.from_bytes(public), binding, Proof.from_bytes(data))

    proving, verifying = median_ms(run_prove), median_ms(run_verify)
    key = SecretKey.from_bytes(secret)
    reference.parity_check(key.params, key.matrix_seed)  # computed once, as the matrix tables are not
    draw = reference_entropy()
    slow_prove = median_ms(lambda: reference.prove(key, binding, draw), repeat=3, warm_up=1)
    proof = Proof.from_bytes(data)
    slow_verify = median_ms(lambda: reference.verify(key.public, binding, proof), repeat=3, warm_up=1)
    size = float(np.mean([len(each) for each in proofs]))
    return [
        Row(name="rounds", value=DEFAULT.rounds, unit=""),
        at_most("public key", len(public), "bytes", 200),
        at_most("proof, mean of 20", size / 1000, "kB", 72),
        at_most("key generation", median_ms(lambda: SecretKey.generate().public), "ms", 20),
        at_most("prove", proving, "ms", 100),
        at_most("verify", verifying, "ms", 60),
        Row(name="prove, per-round reference", value=slow_prove, unit="ms"),
        Row(name="verify, per-round reference", value=slow_verify, unit="ms"),
        at_least("prove, ratio to reference", slow_prove / proving, "x", 5),
        at_least("verify, ratio to reference", slow_verify / verifying, "x", 5),
    ]


def reference_entropy() -> Callable[[int], bytes]:
    """Randomness for the reference prover."""
    return np.random.default_rng(0).bytes


def digest_rows() -> list[Row]:
    """The digest of a 45 MB state, from an open file, and what it allocates meanwhile."""
    random = np.random.default_rng(0)
    arrays = {f"layer{i}.weight": random.normal(size=562_500).astype(np.float32) for i in range(20)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(path, arrays)
        took = median_ms(lambda: model_digest(open_model(path)))
        tracemalloc.start()
        model_digest(open_model(path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return [
        at_most("digest of a 45 MB file", took / 1e3, "s", 0.15),
        at_most("memory it allocates", peak / 1e6, "MB", 4.5),
    ]


def start_rows() -> list[Row]:
    """`zktrace --help` from nothing, in a new process."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "zktrace", "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return [at_most("zktrace --help", sorted(times)[len(times) // 2], "s", 0.3)]


if __name__ == "__main__":
    report("credentials", credential_rows() + digest_rows() + start_rows())
