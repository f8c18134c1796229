"""Biases and rows from seeds, linear scores. States no probability."""

from zktrace.codes.biases import Biases, cutoff
from zktrace.codes.cache import RowCache
from zktrace.codes.coefficients import Coefficients, quantise, symmetric
from zktrace.codes.decoding import without
from zktrace.codes.laws import LAWS, Law, draw
from zktrace.codes.rows import Code, expand, unpack
from zktrace.codes.scores import score_all, sums, top
from zktrace.codes.soft import Channel, fit_channel, soft
from zktrace.derivation.key import CodeKey

__all__ = [
    "LAWS",
    "Biases",
    "Channel",
    "Code",
    "CodeKey",
    "Coefficients",
    "Law",
    "RowCache",
    "cutoff",
    "draw",
    "expand",
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
