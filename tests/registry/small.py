"""A registry small enough to fill in a test: short codes, credentials of the test set."""

from fractions import Fraction
from functools import cache

from support import seeded
from zktrace.codes import CodeKey
from zktrace.credentials import PublicKey, SecretKey, by_name
from zktrace.registry.custody import CodeShape, Custody
from zktrace.registry.enrolling import enrol
from zktrace.registry.records import (
    Dispatch,
    Investigation,
    Layout,
    Record,
    Release,
    Revocation,
    Setup,
    Verdict,
    planned,
)
from zktrace.registry.registry import Registry

SHAPES = (
    CodeShape(carrier="weight", length=24, colluders=2),
    CodeShape(carrier="feature", length=33, colluders=3),
)
CUSTODY = Custody(key=CodeKey(secret=bytes(range(32))), shapes=SHAPES)
BUDGET = Fraction(1, 100)


@cache
def public_key(label: str) -> PublicKey:
    return SecretKey.generate(by_name("test-128-64-16"), entropy=seeded(label)).public


@cache
def setup() -> Setup:
    return CUSTODY.setup(title="a federation", budget=BUDGET)


def layout(carrier: str) -> Layout:
    return Layout(
        carrier=carrier,
        profile="informed",
        dimension=64,
        layers=(32, 32) if carrier == "weight" else (),
        directions=bytes(32),
        reference=bytes(32),
        probes=bytes(32),
    )


def release(name: str = "v1", carriers: tuple[str, ...] = ("weight",)) -> Release:
    return Release(name=name, model=bytes(32), layouts=tuple(layout(each) for each in carriers))


def dispatch(station: str, release: str = "v1") -> Dispatch:
    return Dispatch(station=station, release=release, copy=bytes(32))


def revocation(station: str) -> Revocation:
    return Revocation(station=station, reason="it left")


def investigation(
    recipients: int,
    budget: Fraction = Fraction(1, 1000),
    *,
    release: str = "v1",
    carriers: tuple[str, ...] = ("weight",),
) -> Investigation:
    return Investigation(
        suspect=bytes(32),
        release=release,
        carriers=carriers,
        rule="certified",
        budget=budget,
        recipients=recipients,
        looks=planned(carriers),
    )


def verdict(index: int, word: str = "certified-attribute", named: tuple[str, ...] = ("alpha",)) -> Verdict:
    return Verdict(investigation=index, verdict=word, named=named, findings=bytes(32))


def add_station(registry: Registry, name: str) -> int:
    return enrol(registry, CUSTODY, station=name, public=public_key(name))


def fill(registry: Registry) -> Registry:
    """One entry of every kind and a few more: ten entries."""
    registry.add(setup())
    add_station(registry, "alpha")
    add_station(registry, "beta")
    more: list[Record] = [release(), dispatch("alpha"), dispatch("beta"), revocation("beta")]
    more += [investigation(2), verdict(7), investigation(2, Fraction(0))]
    for each in more:
        registry.add(each)
    return registry
