"""What the paper has of identity marks: means over ten seeds, with deviations where it gives them."""

from dataclasses import dataclass
from typing import Final

ROUNDS: Final = 100
SEEDS: Final = 10  # behind every value of the paper
BITS: Final = 128  # of a codeword
SCALES: Final = 4800  # that codewords are written into


@dataclass(frozen=True, slots=True)
class Printed:
    """A value as the paper prints it: shares and accuracies in percent, agreement between 0 and 1."""

    mean: float
    deviation: float | None = None


def _p(mean: float, deviation: float | None = None) -> Printed:
    return Printed(mean, deviation)


ATTRIBUTION: Final = {  # tab:attribution
    "gnss": {
        "attribution": _p(98.0, 4.0),
        "own": _p(0.96, 0.02),
        "others": _p(0.50, 0.01),
        "accuracy": _p(93.4, 1.0),
    },
    "cifar10": {
        "attribution": _p(100.0, 0.0),
        "own": _p(0.94, 0.01),
        "others": _p(0.50, 0.01),
        "accuracy": _p(84.9, 0.3),
    },
}

GROUP_ACCURACY: Final = {"gnss": _p(93.9, 0.4), "cifar10": _p(84.7, 0.2)}  # tab:attribution, FedZKP (group)


def _survival(
    predicted: float, own: float, attribution: float, accuracy: float, deviation: float = 0.0
) -> dict[str, Printed]:
    return {
        "predicted": _p(predicted),
        "own": _p(own),
        "others": _p(0.50),
        "attribution": _p(attribution, deviation),
        "accuracy": _p(accuracy),
    }


SURVIVAL: Final = {  # tab:survival, by dataset and stations
    ("cifar10", 5): _survival(0.97, 1.00, 100, 85),
    ("cifar10", 10): _survival(0.83, 0.94, 100, 85),
    ("cifar10", 20): _survival(0.68, 0.86, 100, 85),
    ("cifar10", 40): _survival(0.59, 0.76, 100, 86),
    ("cifar10", 80): _survival(0.55, 0.66, 88, 86, 4),
    ("cifar10", 120): _survival(0.53, 0.63, 61, 86, 5),
    ("gnss", 5): _survival(0.99, 1.00, 100, 92),
    ("gnss", 10): _survival(0.90, 0.96, 98, 93, 4),
    ("gnss", 20): _survival(0.75, 0.88, 96, 92, 3),
    ("gnss", 40): _survival(0.64, 0.77, 87, 86, 4),
}
BASELINE: Final = {"cifar10": 7.32, "gnss": 4.73}  # G

NONIID: Final = {  # tab:noniid, by dataset, alpha and participation: attribution and accuracy
    ("gnss", 0.1, 1.0): (_p(16.0, 12.0), _p(58.2, 9.4)),
    ("gnss", 0.25, 1.0): (_p(32.0, 16.6), _p(84.1, 8.3)),
    ("gnss", 0.5, 1.0): (_p(79.0, 13.0), _p(92.0, 0.9)),
    ("gnss", 2.0, 1.0): (_p(98.0, 4.0), _p(92.3, 2.6)),
    ("gnss", 2.0, 0.5): (_p(98.0, 4.0), _p(91.4, 2.2)),
    ("gnss", 2.0, 0.3): (_p(98.0, 4.0), _p(90.7, 2.2)),
    ("cifar10", 0.1, 1.0): (_p(51.0, 14.5), _p(74.6, 4.5)),
    ("cifar10", 0.25, 1.0): (_p(91.0, 7.0), _p(81.7, 0.6)),
    ("cifar10", 0.5, 1.0): (_p(100.0, 0.0), _p(83.3, 0.4)),
    ("cifar10", 2.0, 1.0): (_p(100.0, 0.0), _p(84.9, 0.2)),
    ("cifar10", 2.0, 0.5): (_p(100.0, 0.0), _p(84.5, 0.3)),
    ("cifar10", 2.0, 0.3): (_p(100.0, 0.0), _p(84.0, 0.4)),
}
NONIID_TRAINED: Final = _p(100.0)  # of who formed an episode, in every cell
ABLE: Final = {("gnss", 0.1): 0.5, ("cifar10", 0.1): 4.1}  # of ten stations, who can form an episode

FEATURES: Final = {  # tab:featurespace: without marks and with them
    ("gnss", "silhouette"): (_p(0.605, 0.027), _p(0.556, 0.040)),
    ("gnss", "nearest"): (_p(0.905, 0.010), _p(0.911, 0.013)),
    ("gnss", "intra"): (_p(3.36, 0.25), _p(5.01, 0.39)),
    ("gnss", "inter"): (_p(12.60, 0.53), _p(16.35, 0.50)),
    ("gnss", "mean_recall"): (_p(0.932), None),  # sub:stressors: the control of the copies
    ("cifar10", "silhouette"): (_p(0.340, 0.002), _p(0.318, 0.004)),
    ("cifar10", "nearest"): (_p(0.794, 0.002), _p(0.797, 0.003)),
    ("cifar10", "intra"): (_p(7.31, 0.11), _p(10.16, 0.18)),
    ("cifar10", "inter"): (_p(14.53, 0.17), _p(18.50, 0.31)),
    ("cifar10", "mean_recall"): (_p(0.844), None),
}
BROADENED: Final = (6.7, 7.1)  # the deviation of the scales, times that of before (sub:stressors)

COVER: Final = 0.9  # of the interval in tab:utility
UTILITY: Final = {  # tab:utility: difference in points, its 90 % interval, p of the test
    "gnss": (-0.04, -0.585, 0.505, 0.0052),
    "cifar10": (0.24, -0.018, 0.498, 0.0489),
}

STRESSORS: Final = {  # sub:stressors
    ("gnss", "median"): {"attribution": _p(98.0), "own": _p(0.95), "accuracy": _p(63.4)},
    ("cifar10", "median"): {"attribution": _p(100.0), "own": _p(0.92), "accuracy": _p(80.2)},
    ("gnss", "shift"): {"attribution": _p(98.0)},
}
