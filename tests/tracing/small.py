"""A small federation in memory: a registry, its code key, and readouts of copies that never were files."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from support import seeded
from zktrace.codes import Code, CodeKey, unpack
from zktrace.credentials import PublicKey, SecretKey
from zktrace.readouts.readout import Readout
from zktrace.registry.custody import CodeShape, Custody
from zktrace.registry.enrolling import enrolment
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import PLACE, Layout, ReleaseRecord
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request
from zktrace.registry.stores.memory import MemoryStore
from zktrace.tracing import Case, trace

Floats = NDArray[np.float64]
LAYERS = (24, 40)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SUSPECT = hashlib.sha256(b"suspect").digest()


@cache
def secret_key(i: int) -> SecretKey:
    """Stations' keys are made once, as are their requests: they cost more than everything else here."""
    return SecretKey.generate(entropy=seeded(f"station {i}"))


def public_key(i: int) -> PublicKey:
    return secret_key(i).public


@cache
def request(i: int, offer: bytes) -> Request:
    return Request.make(secret_key(i), offer, nonce=seeded(f"nonce {i}")(32))


def unproved(i: int, offer: bytes) -> Request:
    """For thousands of registries: it goes on record, and no judge would take it."""
    return Request(
        offer=offer, nonce=seeded(f"nonce {i}")(32), public_key=public_key(i).to_bytes(), proof=b"\0"
    )


@dataclass(frozen=True, kw_only=True)
class Federation:
    """Everything an operator holds."""

    registry: Registry
    custody: Custody
    release: ReleaseRecord
    references: dict[str, Floats]
    requests: dict[str, Request]

    def copy_readout(self, carrier: str, rows: Sequence[int], *, noise: float = 0.3, seed: int = 0) -> Floats:
        """What the average of some stations' copies reads, less the reference in the informed profile."""
        rng = np.random.default_rng(seed)
        code = self.code(carrier)
        bits = unpack(code.rows(rows), code.length).astype(np.float64)
        return np.asarray((2 * bits - 1).mean(axis=0) + noise * rng.standard_normal(code.length))

    def code(self, carrier: str) -> Code:
        return self.custody.code(
            carrier, self.registry.ledger().claims, length=len(self.references[carrier]), law="tardos"
        )

    def row(self, carrier: str, row: int) -> bytes:
        return self.code(carrier).rows([row]).tobytes()

    def seed(self, carrier: str, release: str = "r1") -> bytes:
        """Of the directions of a release: one on record, or any other name for the one that comes next."""
        ledger = self.registry.ledger()
        known = ledger.releases.get(release)
        number, root = (
            (len(ledger.releases), ledger.root) if known is None else (known[1].number, known[1].root)
        )
        return self.custody.direction_seed(carrier, number, root)

    def add_release(self, name: str, model: bytes, layouts: Sequence[Layout]) -> ReleaseRecord:
        """Put the next release on record."""
        ledger = self.registry.ledger()
        made = ReleaseRecord(
            name=name, number=len(ledger.releases), root=ledger.root, model=model, layouts=tuple(layouts)
        )
        self.registry.add(made)
        return made

    def readout(self, carrier: str, values: Floats) -> Readout:
        informed = self.release.layout(carrier).profile == "informed"  # type: ignore[union-attr]
        return Readout(
            carrier=carrier, values=values, reference=self.references[carrier] if informed else None
        )

    def trace(
        self,
        rows: Sequence[int],
        *,
        carriers: Sequence[str] = ("weight",),
        budget: Fraction = Fraction(1, 1000),
        seed: int = 0,
        negate: bool = False,
    ) -> Case:
        """Investigate the average of some copies."""
        sign = -1.0 if negate else 1.0
        readouts = [
            self.readout(each, sign * self.copy_readout(each, rows, seed=seed + at))
            for at, each in enumerate(carriers)
        ]
        return self.investigate(readouts, budget=budget)

    def investigate(self, readouts: Sequence[Readout], *, budget: Fraction = Fraction(1, 1000)) -> Case:
        return trace(
            self.registry,
            self.custody,
            suspect=SUSPECT,
            release=self.release.name,
            readouts=readouts,
            budget=budget,
            requests=self.requests.get,
        )


def federation(
    *,
    stations: int = 6,
    length: int = 128,
    carriers: Sequence[str] = ("weight",),
    profile: str = "informed",
    seed: str = "code key",
    budget: Fraction = Fraction(1, 2),
    registry: Registry | None = None,
    proofs: bool = True,
) -> Federation:
    """A registry with everybody enrolled and one release; without `proofs` no request is worth anything."""
    shapes = tuple(CodeShape(carrier=each, colluders=2) for each in carriers)
    custody = Custody(key=CodeKey.generate(entropy=seeded(seed)), shapes=shapes)
    registry = registry or Registry(MemoryStore(), clock=lambda: NOON)
    registry.add(custody.setup(title="test", budget=budget, places=stations + 1, releases=4))
    requests = {f"station-{i}": add_station(registry, i, proofs=proofs) for i in range(stations)}
    rng = np.random.default_rng(7)
    references = {each: rng.standard_normal(length) for each in carriers}
    made = Federation(
        registry=registry,
        custody=custody,
        release=None,
        references=references,
        requests=requests,  # type: ignore[arg-type]
    )
    layouts = [layout(each, profile, references[each]) for each in carriers]
    return replace(made, release=made.add_release("r1", hashlib.sha256(b"shared").digest(), layouts))


def add_station(registry: Registry, i: int, *, proofs: bool = True) -> Request:
    ledger = registry.ledger()
    asked = (request if proofs else unproved)(i, ledger.offer(PLACE, i).digest)
    registry.add(enrolment(f"station-{i}", i, asked, bits=ledger.setup.identity_bits))
    return asked


def layout(carrier: str, profile: str, reference: Floats, *, layers: tuple[int, ...] = LAYERS) -> Layout:
    weight = carrier == "weight"
    return Layout(
        carrier=carrier,
        profile=profile,
        length=len(reference),
        law="tardos",
        dimension=sum(layers) if weight else 32,
        layers=layers if weight else (),
        deviations=b"",
        reference=readout_digest(reference) if profile == "informed" else bytes(32),
        probes=bytes(32) if weight else hashlib.sha256(b"probes").digest(),
        frozen=False,
    )


def wild(length: int) -> list[Floats]:
    """Readouts of suspects that were shaped to break arithmetic."""
    signs = np.where(np.arange(length) % 3 == 0, 1.0, -1.0)
    return [
        np.zeros(length),
        np.full(length, 1e308),
        1e308 * signs,
        5e-324 * signs,
        np.where(np.arange(length) == 0, 1e308, 1e-308),
        np.logspace(-300, 300, length) * signs,
    ]
