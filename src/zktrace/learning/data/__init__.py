"""Images with labels, and who holds them: simulated or recorded CRPA interference, CIFAR-10. No torch.

from zktrace.learning.data import GnssSpec, load_gnss

dataset, plan = load_gnss(GnssSpec(total=2000, seed=42))
images, labels = dataset.take(plan.shard(0))          # float32 [n, 4, 32, 32], int64 [n]
"""

from zktrace.learning.data.cifar10 import load_cifar10
from zktrace.learning.data.counts import IMBALANCE, class_counts
from zktrace.learning.data.dataset import Dataset, Normalisation
from zktrace.learning.data.episodes import StationReport, episode_report
from zktrace.learning.data.gnss_dataset import GnssSpec, load_gnss
from zktrace.learning.data.partition import SplitPlan, make_plan
from zktrace.learning.data.recordings import load_recordings
from zktrace.learning.data.source import (
    Cifar10Source,
    DataSource,
    GnssSource,
    HeldSource,
    RecordingsSource,
    source_of,
)
from zktrace.learning.data.splits import Split, split_samples

__all__ = [
    "IMBALANCE",
    "Cifar10Source",
    "DataSource",
    "Dataset",
    "GnssSource",
    "GnssSpec",
    "HeldSource",
    "Normalisation",
    "RecordingsSource",
    "Split",
    "SplitPlan",
    "StationReport",
    "class_counts",
    "episode_report",
    "load_cifar10",
    "load_gnss",
    "load_recordings",
    "make_plan",
    "source_of",
    "split_samples",
]
