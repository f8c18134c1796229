"""A registry small enough to fill in a test: short codes, credentials of the test set."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

from support import seeded
from zktrace.carriers import planned
from zktrace.codes import CodeKey
from zktrace.credentials import PublicKey, SecretKey, by_name
from zktrace.registry.custody import CodeShape, Custody
from zktrace.registry.enrolling import enrol
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import (
    PLACE,
    DispatchRecord,
    InvestigationRecord,
    Layout,
    Record,
    ReleaseRecord,
    RevocationRecord,
    SetupRecord,
    VerdictRecord,
)
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request

SHAPES = (
    CodeShape(carrier="weight", colluders=2),
    CodeShape(carrier="feature", colluders=3),
)
LENGTHS = {"weight": 24, "feature": 33, "output": 40}
CUSTODY = Custody(key=CodeKey(secret=bytes(range(32))), shapes=SHAPES)
BUDGET = Fraction(1, 100)


@cache
def secret_key(label: str) -> SecretKey:
    return SecretKey.generate(by_name("test-128-64-16"), entropy=seeded(label))


def public_key(label: str) -> PublicKey:
    return secret_key(label).public


@cache
def request(label: str, offer: bytes) -> Request:
    """A station's request; its nonce is fixed, so that the same log comes out every time."""
    return Request.make(secret_key(label), offer, nonce=seeded(f"nonce {label}")(32))


@cache
def setup(places: int = 8) -> SetupRecord:
    return CUSTODY.setup(title="a federation", budget=BUDGET, places=places, releases=4)


def layout(carrier: str) -> Layout:
    return Layout(
        carrier=carrier,
        profile="informed",
        length=LENGTHS[carrier],
        law="tardos",
        dimension=64,
        layers=(32, 32) if carrier == "weight" else (),
        deviations=b"",
        reference=bytes(32),
        probes=bytes(32),
        frozen=False,
    )


def release(
    ledger: Ledger, name: str = "v1", carriers: tuple[str, ...] = ("weight",), **changed: object
) -> ReleaseRecord:
    """The release that may come next."""
    made = ReleaseRecord(
        name=name,
        number=len(ledger.releases),
        root=ledger.root,
        model=bytes(32),
        layouts=tuple(layout(each) for each in carriers),
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def dispatch(station: str, release: str = "v1") -> DispatchRecord:
    return DispatchRecord(station=station, release=release, copy=bytes(32))


def revocation(station: str) -> RevocationRecord:
    return RevocationRecord(station=station, reason="it left")


def investigation(
    recipients: int,
    budget: Fraction = Fraction(1, 1000),
    *,
    release: str = "v1",
    carriers: tuple[str, ...] = ("weight",),
) -> InvestigationRecord:
    return InvestigationRecord(
        suspect=bytes(32),
        release=release,
        carriers=carriers,
        rule="certified",
        budget=budget,
        recipients=recipients,
        looks=planned(carriers),
    )


def verdict(
    index: int, word: str = "certified-attribute", named: tuple[str, ...] = ("alpha",)
) -> VerdictRecord:
    return VerdictRecord(investigation=index, verdict=word, named=named, findings=bytes(32))


def add_station(registry: Registry, name: str, key: str | None = None) -> int:
    ledger = registry.ledger()
    offer = ledger.offer(PLACE, len(ledger.by_row)).digest
    return enrol(registry, station=name, request=request(key or name, offer), allow_weak_params=True)


def fill(registry: Registry) -> Registry:
    """One entry of every kind and a few more: ten entries."""
    registry.add(setup())
    add_station(registry, "alpha")
    add_station(registry, "beta")
    registry.add(release)
    more: list[Record] = [dispatch("alpha"), dispatch("beta"), revocation("beta")]
    more += [investigation(2), verdict(7), investigation(2, Fraction(0))]
    for each in more:
        registry.add(each)
    return registry
