"""Counts by class, split and station, for a person and for a program."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zktrace.learning.arrays import Indices
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.data.episodes import StationReport, episode_report
from zktrace.learning.data.partition import SplitPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a plan does to a set of labels."""

    note: str
    class_names: tuple[str, ...]
    parts: dict[str, tuple[int, ...]]  # samples a class in every part of the split
    shape: EpisodeShape
    stations: tuple[StationReport, ...]
    draws: int

    @property
    def formable(self) -> tuple[int, ...]:
        """Stations that can train."""
        return tuple(report.station for report in self.stations if report.formable)

    def facts(self) -> dict[str, object]:
        """As plain values."""
        shape = self.shape
        return {
            "note": self.note,
            "classes": list(self.class_names),
            "samples": sum(sum(counts) for counts in self.parts.values()),
            "split": {name: list(counts) for name, counts in self.parts.items()},
            "episode": {"ways": shape.way, "shots": shape.shot, "queries": shape.query},
            "stations": [
                {
                    "station": report.station,
                    "samples": report.samples,
                    "counts": list(report.counts),
                    "usable_classes": list(report.usable),
                    "formable": report.formable,
                }
                for report in self.stations
            ],
            "formable_stations": list(self.formable),
            "partition_draws": self.draws,
        }

    def text(self) -> str:
        """As a table."""
        rows = [["", *self.class_names, "all", ""]]
        for name, counts in self.parts.items():
            rows.append([name, *map(str, counts), str(sum(counts)), ""])
        for report in self.stations:
            verdict = "episode" if report.formable else f"no episode, {len(report.usable)} usable classes"
            counts = report.counts
            rows.append([f"station {report.station}", *map(str, counts), str(report.samples), verdict])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for row in rows:
            first, *middle, last = (
                f"{cell:<{width}}" if column in (0, len(row) - 1) else f"{cell:>{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join((first, *middle, last)).rstrip())
        shape = self.shape
        lines.insert(0, self.note)
        lines.append(
            f"{len(self.formable)} of {len(self.stations)} stations can form "
            f"a {shape.way}-way {shape.shot}-shot episode with {shape.query} queries"
        )
        return "\n".join(lines)


def summarise(
    labels: Indices, class_names: Sequence[str], note: str, plan: SplitPlan, shape: EpisodeShape
) -> Summary:
    """Count."""
    classes = len(class_names)
    return Summary(
        note=note,
        class_names=tuple(class_names),
        parts={
            name: tuple(np.bincount(labels[part], minlength=classes).tolist())
            for name, part in plan.split.parts().items()
        },
        shape=shape,
        stations=episode_report(labels, plan.shards(), classes=classes, shape=shape),
        draws=plan.draws,
    )
