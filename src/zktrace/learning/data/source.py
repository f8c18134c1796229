"""Where samples come from, and who holds what of them: one value that training, dispatch and studies share.

    GnssSource         simulated interference, made anew or from a cache
    RecordingsSource   a folder of recorded interference
    Cifar10Source      a folder of CIFAR-10
    HeldSource         a dataset at hand: anybody's own images

A source is decided by its fields, wherever it is loaded; folders are the machine's own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.data.cifar10 import load_cifar10
from zktrace.learning.data.dataset import Dataset
from zktrace.learning.data.gnss.settings import config_named
from zktrace.learning.data.gnss_dataset import GnssSpec, load_gnss
from zktrace.learning.data.partition import SplitPlan, make_plan
from zktrace.learning.data.recordings import load_recordings
from zktrace.learning.presets import DataConfig

Part: TypeAlias = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class DataSource(ABC):
    """Samples, their split, and their partition among stations."""

    seed: int  # of all that is drawn
    stations: int
    alpha: float  # concentration of the Dirichlet partition over labels

    def load(self) -> tuple[Dataset, SplitPlan]:
        """The dataset and who holds what of it. The last one is kept."""
        return _loaded(self)

    def samples(self, part: Part) -> tuple[Images, Labels]:
        """One part of the split."""
        dataset, plan = self.load()
        return dataset.take(plan.split.parts()[part])

    @abstractmethod
    def made(self) -> tuple[Dataset, SplitPlan]:
        """The same, made or read anew."""

    def _planned(self, dataset: Dataset) -> tuple[Dataset, SplitPlan]:
        """With the split that the dataset prescribes, or else one by the seed."""
        plan = make_plan(
            dataset.labels,
            classes=dataset.classes,
            stations=self.stations,
            alpha=self.alpha,
            seed=self.seed,
            split=dataset.split,
        )
        return dataset, plan


@lru_cache(maxsize=1)
def _loaded(source: DataSource) -> tuple[Dataset, SplitPlan]:
    return source.made()


@dataclass(frozen=True, kw_only=True)
class GnssSource(DataSource):
    """Simulated CRPA interference."""

    total: int
    imbalance: float  # largest class over smallest
    setting: str  # of the multipath: A or B
    domain_shift: bool  # a front end of its own for each station
    receiver_shift: bool = False  # gain, and noise of its own for each station: a stress test
    cache: Path | None = None  # None: in memory

    def made(self) -> tuple[Dataset, SplitPlan]:
        """Simulated, or from the cache."""
        spec = GnssSpec(
            total=self.total,
            seed=self.seed,
            imbalance=self.imbalance,
            stations=self.stations,
            alpha=self.alpha,
            config=config_named(
                self.setting, domain_shift=self.domain_shift, receiver_shift=self.receiver_shift
            ),
        )
        return load_gnss(spec, cache=self.cache)


@dataclass(frozen=True, kw_only=True)
class Cifar10Source(DataSource):
    """CIFAR-10 in its binary layout."""

    folder: Path | None

    def made(self) -> tuple[Dataset, SplitPlan]:
        """Read from the folder."""
        if self.folder is None:
            raise InputError("this preset trains on CIFAR-10: name its folder with --cifar10")
        return self._planned(load_cifar10(self.folder))


@dataclass(frozen=True, kw_only=True)
class RecordingsSource(DataSource):
    """Recorded CRPA interference, split as its files say; without test samples, by the seed."""

    folder: Path
    full_scale: float = 1.0

    def made(self) -> tuple[Dataset, SplitPlan]:
        """Read from the folder and rendered."""
        dataset = load_recordings(self.folder, full_scale=self.full_scale)
        tested = dataset.split is not None and len(dataset.split.test)
        return self._planned(dataset if tested else replace(dataset, split=None))


@dataclass(frozen=True, kw_only=True)
class HeldSource(DataSource):
    """A dataset that somebody has at hand."""

    dataset: Dataset

    def made(self) -> tuple[Dataset, SplitPlan]:
        """The dataset as it is."""
        return self._planned(self.dataset)


def source_of(
    data: DataConfig,
    *,
    seed: int,
    stations: int,
    alpha: float,
    cifar10: Path | None = None,
    cache: Path | None = None,
) -> DataSource:
    """The source that a preset speaks of, with this machine's folders."""
    if data.dataset == "cifar10":
        return Cifar10Source(seed=seed, stations=stations, alpha=alpha, folder=cifar10)
    if data.dataset == "recordings":
        return RecordingsSource(
            seed=seed,
            stations=stations,
            alpha=alpha,
            folder=Path(data.folder),
            full_scale=data.full_scale,
        )
    return GnssSource(
        seed=seed,
        stations=stations,
        alpha=alpha,
        total=data.samples,
        imbalance=data.imbalance,
        setting=data.setting,
        domain_shift=data.domain_shift,
        receiver_shift=data.receiver_shift,
        cache=cache,
    )
