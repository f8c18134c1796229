"""`zktrace demo`: what the product does today, on real files in a folder that is removed afterwards."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from zktrace.cli.output import Json, emit, say
from zktrace.errors import Error

if TYPE_CHECKING:
    from zktrace.credentials import Binding, PublicKey, SecretKey


def demo(as_json: Json = False) -> None:
    """Two stations enrol, one proves its credential on a model, and five forgeries are tried and refused."""
    with tempfile.TemporaryDirectory(prefix="zktrace-demo-") as folder:
        story = _Story(folder=Path(folder), quiet=as_json)
        story.run()
    emit(story.facts, as_json=as_json, text="Every honest proof held and every forgery was refused.")


class _Story:
    """The demo as a sequence of steps; each prints what it does and keeps the facts."""

    def __init__(self, *, folder: Path, quiet: bool) -> None:
        self.folder = folder
        self.facts: dict[str, object] = {"ok": True}
        self._say: Callable[[str], None] = (lambda _: None) if quiet else say

    def run(self) -> None:
        """All steps in order."""
        alpha, bravo = self._enrol("alpha"), self._enrol("bravo")
        binding = self._model(alpha.public, "model", buffer=0)
        proof = self._prove(alpha, binding)
        self._cheat(alpha, bravo, binding, proof)

    def _enrol(self, name: str) -> "SecretKey":
        from zktrace.credentials import SecretKey
        from zktrace.primitives.files import write_atomic

        start = time.perf_counter()
        key = SecretKey.generate()
        public = key.public.to_bytes()
        elapsed = time.perf_counter() - start
        write_atomic(self.folder / f"{name}.key", key.to_bytes(), secret=True)
        write_atomic(self.folder / f"{name}.pub", public)
        self._say(
            f"station {name:<6} enrols   public key {len(public)} bytes, {elapsed * 1e3:.0f} ms, "
            f"codeword {key.public.codeword().hex()}"
        )
        self.facts[f"{name}_fingerprint"] = key.public.fingerprint.hex()
        return key

    def _model(self, public: "PublicKey", name: str, *, buffer: int) -> "Binding":
        """A small model file, and the statement about it.

        Its component is the codeword itself: what reading a noiseless identity mark would give.
        """
        import numpy as np

        from zktrace.credentials import Component, ModelBinding
        from zktrace.models import model_digest, open_model, save_model

        path = self.folder / f"{name}.safetensors"
        scales = np.linspace(0.5, 1.5, 64, dtype=np.float32)
        counter = np.array(100 + buffer, dtype=np.int64)
        save_model(path, {"bn1.weight": scales, "bn1.num_batches_tracked": counter})
        component = Component(bits=128, packed=public.codeword())
        return ModelBinding(state_digest=model_digest(open_model(path)), component=component)

    def _prove(self, key: "SecretKey", binding: "Binding") -> bytes:
        from zktrace.credentials import Proof, prove, verify

        start = time.perf_counter()
        data = prove(key, binding).to_bytes()
        proved = time.perf_counter()
        verify(key.public, binding, Proof.from_bytes(data))
        verified = time.perf_counter()
        self.facts |= {
            "proof_bytes": len(data),
            "prove_ms": round((proved - start) * 1e3, 3),
            "verify_ms": round((verified - proved) * 1e3, 3),
        }
        self._say(
            f"station alpha  proves   it holds its credential, said of model.safetensors: {len(data)} bytes, "
            f"{(proved - start) * 1e3:.0f} ms; verified in {(verified - proved) * 1e3:.0f} ms"
        )
        return data

    def _cheat(self, alpha: "SecretKey", bravo: "SecretKey", binding: "Binding", good: bytes) -> None:
        from zktrace.credentials import MessageBinding, SecretKey, prove

        public = alpha.public
        middle = len(good) // 2
        damaged = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
        guessed = SecretKey(params=alpha.params, matrix_seed=alpha.matrix_seed, witness_seed=bytes(32))
        attempts: list[tuple[str, Binding, bytes]] = [
            ("bravo poses as alpha", binding, prove(bravo, binding).to_bytes()),
            ("the server guesses alpha's witness", binding, prove(guessed, binding).to_bytes()),
            ("replay on a model whose batch counter differs", self._model(public, "other", buffer=1), good),
            ("replay as a signature", MessageBinding.of(b"received copy 7"), good),
            ("one bit of the proof changed", binding, damaged),
        ]
        refusals = []
        for title, statement, data in attempts:
            reason = self._refusal(public, statement, data)
            self._say(f"forgery        refused  {title}: {reason}")
            refusals.append({"attempt": title, "reason": reason})
        self.facts["refused"] = refusals

    @staticmethod
    def _refusal(public: "PublicKey", binding: "Binding", data: bytes) -> str:
        from zktrace.credentials import Proof, verify

        try:
            verify(public, binding, Proof.from_bytes(data))
        except Error as error:
            return str(error)
        raise AssertionError("a forgery was accepted")
