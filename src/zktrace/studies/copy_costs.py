"""What copies cost: few-shot accuracy on the same episodes, and recall of each class among all of them.

Recall is that of the nearest prototype in the original label space. Prototypes are means of one half of the
test samples of each class, the other half is asked; so each image is embedded once by each model. The paper's
`far_proxy` of a class is 1 less its recall: confusion between classes, not false alarms on clean signals.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.arrays import Images, Labels
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.cost import EPISODES, Cost
from zktrace.learning.evaluation import EpisodeScore, Recall, class_recall, embed, episode_accuracy
from zktrace.learning.network import embedding_of
from zktrace.learning.threads import single_threaded
from zktrace.readouts.scales import Arrays

_HALVES: Final = 21  # purpose of randomness
_DIGITS: Final = 5


def copy_costs(
    shared: Arrays,
    copies: Iterable[tuple[str, Arrays]],
    images: Images,
    labels: Labels,
    *,
    shape: EpisodeShape,
    seed: int,
) -> dict[str, Any]:
    """Of the shared model and of copies by name. A class of one test sample has no recall."""
    known, asked = halves(labels, seed)

    def measured(state: Arrays) -> tuple[EpisodeScore, Recall]:
        with single_threaded():
            features = embed(embedding_of(state, images, None), images)
        rng = np.random.default_rng(seed)
        score = episode_accuracy(features, labels, shape, rng, episodes=EPISODES)
        return score, class_recall(features[known], labels[known], features[asked], labels[asked])

    before, clean = measured(shared)
    found = {name: measured(state) for name, state in copies}
    cost = Cost(shared=before, copies={name: score for name, (score, _) in found.items()})
    marked = np.mean([list(recall.by_class.values()) for _, recall in found.values()], axis=0)
    return {
        "shared": before.mean,
        "copies": [each.mean for each in cost.copies.values()],
        "mean_cost_pp": cost.mean,
        "worst_cost_pp": cost.worst,
        "recall": {
            "classes": list(clean.by_class),
            "shared": [round(each, _DIGITS) for each in clean.by_class.values()],
            "copies": [round(each, _DIGITS) for each in marked.tolist()],
        },
        "far_proxy": {
            "shared": round(1 - clean.mean, _DIGITS),
            "copies": round(1 - float(marked.mean()), _DIGITS),
        },
    }


def halves(labels: Labels, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Samples that prototypes are made of, and samples that are asked: half of each class, by the seed."""
    rng, known, asked = np.random.default_rng([seed, _HALVES]), [], []
    for each in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == each))
        middle = len(own) // 2
        if middle:
            known.append(own[:middle])
            asked.append(own[middle:])
    nobody = np.empty(0, dtype=np.intp)
    return np.sort(np.concatenate(known or [nobody])), np.sort(np.concatenate(asked or [nobody]))
