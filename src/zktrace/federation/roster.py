"""Credentials of a study's stations: anybody can derive them from the seed, so they protect nothing."""

from zktrace.credentials import PublicKey, SecretKey
from zktrace.primitives.shake import Shake


def experimental_key(seed: int, station: int) -> SecretKey:
    """The key of a station of a study."""
    stream = Shake("zkt-experiment-v1/station", seed.to_bytes(16, "big"), station.to_bytes(4, "big"))
    halves = iter((stream.digest(64)[:32], stream.digest(64)[32:]))
    return SecretKey.generate(entropy=lambda _: next(halves))


def experimental_roster(seed: int, stations: int) -> list[PublicKey]:
    """The public keys of all stations of a study."""
    return [experimental_key(seed, station).public for station in range(stations)]
