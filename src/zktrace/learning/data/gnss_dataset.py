"""The GNSS benchmark: simulated CRPA interference, divided as in the paper.

The order matters where receivers differ. (1) Labels: geometric counts, shuffled by the data seed. (2) Split
and partition: by the plan's seed, from labels alone, which gives every sample a station. (3) Sample i is
simulated from (seed, i) with the receiver of its station. With the domain shift off, step 3 does not look at
stations, so every partition shares one set of images.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from zktrace.errors import LimitExceeded
from zktrace.learning.arrays import Labels
from zktrace.learning.data.cache import SAMPLE_LIMIT, SampleRequest, cached
from zktrace.learning.data.counts import IMBALANCE, class_counts, shuffled_labels
from zktrace.learning.data.dataset import Dataset
from zktrace.learning.data.gnss.settings import DEFAULT, GnssConfig
from zktrace.learning.data.gnss.simulator import CLASS_NAMES, Progress, Simulator
from zktrace.learning.data.partition import SplitPlan, make_plan

NOTE: Final = "simulated CRPA interference"
_MOST_WORKERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GnssSpec:
    """All that decides the benchmark. The defaults are the paper's scale."""

    total: int = 100_000
    seed: int = 42  # of the samples
    plan_seed: int | None = None  # of split and partition; None: the same
    imbalance: float = IMBALANCE
    stations: int = 10
    alpha: float = 2.0
    minimum: int = 1  # training samples a station
    config: GnssConfig = DEFAULT

    def labels(self) -> Labels:
        """The class of every sample."""
        if self.total > SAMPLE_LIMIT:
            raise LimitExceeded(f"{self.total} samples, the limit is {SAMPLE_LIMIT}")
        counts = class_counts(self.total, classes=len(CLASS_NAMES), imbalance=self.imbalance)
        return shuffled_labels(counts, seed=self.seed)

    def plan(self) -> SplitPlan:
        """Split and partition, without making a sample."""
        return make_plan(
            self.labels(),
            classes=len(CLASS_NAMES),
            stations=self.stations,
            alpha=self.alpha,
            seed=self.seed if self.plan_seed is None else self.plan_seed,
            minimum=self.minimum,
        )

    def simulator(self) -> Simulator:
        """Of all its samples."""
        return Simulator(seed=self.seed, config=self.config, stations=self.stations)


def load_gnss(
    spec: GnssSpec,
    *,
    cache: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Dataset, SplitPlan]:
    """The simulated benchmark and its plan. Without a cache folder everything is made in memory."""
    labels, plan, simulator = spec.labels(), spec.plan(), spec.simulator()
    threads = default_workers() if workers is None else workers
    if cache is None:
        indices = np.arange(spec.total, dtype=np.int64)
        made = simulator.samples(indices, labels, plan.station_of, workers=threads, progress=progress)
        images = made.images
    else:
        request = SampleRequest(simulator=simulator, labels=labels, stations=plan.station_of)
        images = cached(cache, request, workers=threads, progress=progress).images
    dataset = Dataset(
        name="gnss",
        images=images,
        labels=labels,
        class_names=CLASS_NAMES,
        note=f"{NOTE} ({spec.config.title})",
        split=plan.split,
        stations=plan.station_of,
    )
    return dataset, plan


def default_workers() -> int:
    """The processors this process may use, at most 8."""
    return max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0))))
