"""Who can form an N-way K-shot episode with Q queries: a station needs N classes of K + Q samples each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from zktrace.learning.arrays import Indices
from zktrace.learning.configs import EpisodeShape


@dataclass(frozen=True, slots=True, kw_only=True)
class StationReport:
    """What a station holds, and whether it can train."""

    station: int
    counts: tuple[int, ...]  # training samples a class
    usable: tuple[int, ...]  # classes with enough samples for an episode
    formable: bool

    @property
    def samples(self) -> int:
        """All training samples."""
        return sum(self.counts)


def episode_report(
    labels: Indices, shards: Iterable[Indices], *, classes: int, shape: EpisodeShape
) -> tuple[StationReport, ...]:
    """One report a station."""
    reports = []
    for station, shard in enumerate(shards):
        counts = np.bincount(labels[shard], minlength=classes)
        usable = np.flatnonzero(counts >= shape.needed)
        reports.append(
            StationReport(
                station=station,
                counts=tuple(counts.tolist()),
                usable=tuple(usable.tolist()),
                formable=len(usable) >= shape.way,
            )
        )
    return tuple(reports)
