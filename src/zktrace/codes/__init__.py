"""Tardos biases and rows from a secret key, linear scores. States no probability."""

from zktrace.codes.biases import Biases, cutoff, draw
from zktrace.codes.cache import RowCache
from zktrace.codes.coefficients import Coefficients, quantise, symmetric
from zktrace.codes.decoding import without
from zktrace.codes.key import CodeKey
from zktrace.codes.rows import Code, unpack
from zktrace.codes.scores import score_all, sums, top
from zktrace.codes.soft import Channel, fit_channel, soft

__all__ = [
    "Biases",
    "Channel",
    "Code",
    "CodeKey",
    "Coefficients",
    "RowCache",
    "cutoff",
    "draw",
    "fit_channel",
    "quantise",
    "score_all",
    "soft",
    "sums",
    "symmetric",
    "top",
    "unpack",
    "without",
]
