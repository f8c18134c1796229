"""How fast and how small are credentials, beside the per-round reference?"""

import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timing import Row, at_least, at_most, least_ms, median_ms, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from credentials import reference  # the per-round reference that the tests trust
from zktrace.credentials import (
    DEFAULT,
    MessageBinding,
    Proof,
    PublicKey,
    SecretKey,
    XLPNParams,
    prove,
    verify,
)
from zktrace.credentials.params import PAPER
from zktrace.models import model_digest, open_model, save_model

BINDING = MessageBinding.of(b"benchmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Sizes and times of one parameter set; keys are read from their bytes in every run."""

    public_bytes: int
    proof_kb: float  # mean of 20
    generate_ms: float
    prove_ms: float
    verify_ms: float
    least_prove_ms: float  # of processor time
    least_verify_ms: float


def measure(params: XLPNParams) -> Measured:
    """The fast implementation at `params`."""
    secret = SecretKey.generate(params).to_bytes()
    public = SecretKey.from_bytes(secret).public.to_bytes()
    proofs = [prove(SecretKey.from_bytes(secret), BINDING).to_bytes() for _ in range(20)]

    def run_prove() -> None:
        prove(SecretKey.from_bytes(secret), BINDING).to_bytes()

    def run_verify() -> None:
        key, proof = PublicKey.from_bytes(public), Proof.from_bytes(proofs[0])
        verify(key, BINDING, proof, allow_weak_params=True)

    return Measured(
        public_bytes=len(public),
        proof_kb=float(np.mean([len(each) for each in proofs])) / 1000,
        generate_ms=median_ms(lambda: SecretKey.generate(params).public),
        prove_ms=median_ms(run_prove),
        verify_ms=median_ms(run_verify),
        least_prove_ms=least_ms(run_prove),
        least_verify_ms=least_ms(run_verify),
    )


def credential_rows() -> list[Row]:
    """The default set, beside the paper's set and beside the per-round reference."""
    default, paper = measure(DEFAULT), measure(PAPER)
    key = SecretKey.generate()
    reference.parity_check(key.params, key.matrix_seed)  # computed once, as the matrix tables are not
    draw = reference_entropy()
    slow_prove = median_ms(lambda: reference.prove(key, BINDING, draw), repeat=3, warm_up=1)
    proof = prove(key, BINDING)
    slow_verify = median_ms(lambda: reference.verify(key.public, BINDING, proof), repeat=3, warm_up=1)
    return [
        Row(name="rounds", value=DEFAULT.rounds, unit=""),
        at_most("public key", default.public_bytes, "bytes", 256),
        at_most("proof, mean of 20", default.proof_kb, "kB", 72),
        at_most("key generation", default.generate_ms, "ms", 20),
        at_most("prove", default.prove_ms, "ms", 100),
        at_most("verify", default.verify_ms, "ms", 60),
        Row(name="prove, least processor time", value=default.least_prove_ms, unit="ms"),
        Row(name="verify, least processor time", value=default.least_verify_ms, unit="ms"),
        Row(name="the paper's set: public key", value=paper.public_bytes, unit="bytes"),
        Row(name="the paper's set: proof, mean of 20", value=paper.proof_kb, unit="kB"),
        Row(name="the paper's set: prove", value=paper.prove_ms, unit="ms"),
        Row(name="the paper's set: verify", value=paper.verify_ms, unit="ms"),
        Row(name="proof, ratio to the paper's set", value=default.proof_kb / paper.proof_kb, unit="x"),
        Row(name="prove, ratio to the paper's set", value=default.prove_ms / paper.prove_ms, unit="x"),
        Row(name="verify, ratio to the paper's set", value=default.verify_ms / paper.verify_ms, unit="x"),
        Row(name="prove, per-round reference", value=slow_prove, unit="ms"),
        Row(name="verify, per-round reference", value=slow_verify, unit="ms"),
        at_least("prove, ratio to reference", slow_prove / default.prove_ms, "x", 5),
        at_least("verify, ratio to reference", slow_verify / default.verify_ms, "x", 5),
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
