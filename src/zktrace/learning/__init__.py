"""The shared model: ResNet without head, prototypical episodes, training, aggregation. Knows no marks.

from zktrace.learning.presets import load_preset
from zktrace.learning.resnet import resnet18
from zktrace.learning.training import pretrain, train_episodes

Nothing is imported here: `presets` and `aggregation` need no torch, and only `evaluation` needs scikit-learn.
"""
