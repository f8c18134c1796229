"""Scores of many rows at once, as exact integers L_i = Σ_b C_b X_ib.

Sixteen positions at a time: a table holds the 65,536 possible sums of their numerators, and two bytes of a
packed row are the place in it where its sum is found, so no bit is ever unpacked. A table is made just before
it is used, for as many rows as pay for it, and is still in the core's cache. Whole numbers have one sum,
whatever the order of the terms: the answer does not depend on blocks or threads.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.codes.cache import Progress, RowCache
from zktrace.codes.checks import packed_rows, whole
from zktrace.codes.coefficients import Coefficients, Integers
from zktrace.codes.rows import INDEX_LIMIT, THREADS, Code
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits

_WORD_BYTES: Final = 8
_FEW = 1024  # rows below which tables do not pay
_TILE = 512  # rows transposed at a time
_BLOCK = 1 << 17  # rows that share a table
_BUFFER = 1 << 25  # bytes of rows a thread holds transposed
_REPORT = 1 << 18  # rows between two reports of progress


def sums(rows: Bits, coefficients: Coefficients, *, threads: int = THREADS) -> Integers:
    """L_i of every packed row. The answer does not depend on `threads`."""
    packed = packed_rows(rows, coefficients.biases.length)
    whole(threads, "the number of threads", 1, 64)
    result = np.empty(len(packed), dtype=np.int64)
    share = max(_FEW, -(-len(packed) // threads))
    if len(packed) <= share:
        _add_up(packed, coefficients, result)
        return result
    parts = [slice(begin, begin + share) for begin in range(0, len(packed), share)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: _add_up(packed[part], coefficients, result[part]), parts))
    return result


def _add_up(rows: Bits, coefficients: Coefficients, out: Integers) -> None:
    numerators = coefficients.numerators
    if len(rows) < _FEW:
        for begin in range(0, len(rows), _TILE):
            bits = np.unpackbits(rows[begin : begin + _TILE], axis=1, count=len(numerators))
            out[begin : begin + _TILE] = bits.astype(np.int64) @ numerators
        return
    tables = _byte_tables(numerators)
    block = max(_TILE, min(_BLOCK, len(rows), _BUFFER // len(tables)))
    transposed = np.empty((len(tables) // _WORD_BYTES, block), dtype=np.uint64)
    for begin in range(0, len(rows), block):
        piece = rows[begin : begin + block]
        words = transposed[:, : len(piece)]
        _transpose(piece, words)
        out[begin : begin + block] = _look_up(words, tables)


def _byte_tables(numerators: Integers) -> NDArray[np.int32]:
    """For each byte of a row, padded to whole words, the sums of its 256 values: shape (bytes, 256)."""
    width = -(-len(numerators) // (8 * _WORD_BYTES)) * _WORD_BYTES
    weights = np.zeros(8 * width, dtype=np.int32)
    weights[: len(numerators)] = numerators  # each below 2^31, and so are all their sums
    tables = np.zeros((width, 256), dtype=np.int32)
    for bit in range(8):
        step = 1 << bit  # the position of bit `bit` counted from the least significant
        tables[:, step : 2 * step] = tables[:, :step] + weights[7 - bit :: 8, None]
    return tables


def _transpose(rows: Bits, out: NDArray[np.uint64]) -> None:
    """Rows as columns of eight-byte words, a tile at a time so that both sides stay in the cache."""
    padded = np.zeros((_TILE, len(out) * _WORD_BYTES), dtype=np.uint8)
    for begin in range(0, len(rows), _TILE):
        tile = rows[begin : begin + _TILE]
        padded[: len(tile), : tile.shape[1]] = tile
        out[:, begin : begin + len(tile)] = padded[: len(tile)].view(np.uint64).T


def _look_up(words: NDArray[np.uint64], tables: NDArray[np.int32]) -> NDArray[np.int32]:
    """L of every column of `words`."""
    count = words.shape[1]
    total, found = np.zeros(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    places = np.empty(count, dtype=np.intp)
    pair = np.empty((256, 256), dtype=np.int32)
    flat = pair.reshape(-1)
    for word, group in zip(words, tables.reshape(len(words), _WORD_BYTES, 256), strict=True):
        values = word.view("<u2")  # two bytes of a row, the first one less significant
        for at in range(0, _WORD_BYTES, 2):
            np.add(group[at + 1][:, None], group[at][None, :], out=pair)
            np.copyto(places, values[at // 2 :: 4])
            np.take(flat, places, out=found, mode="wrap")  # every place is in range: nothing wraps
            total += found
    return total


def score_all(
    code: Code,
    count: int,
    coefficients: Coefficients,
    *,
    cache: RowCache | None = None,
    progress: Progress | None = None,
) -> Integers:
    """L of rows 0..count-1: from the cache, or from rows made on the way and forgotten."""
    whole(count, "the number of rows", 0, INDEX_LIMIT)
    if coefficients.biases != code.biases:
        raise InputError("the coefficients belong to the biases of another code")
    if cache is not None and cache.code != code:
        raise InputError(f"{cache.path}: rows of another code")
    if cache is not None and cache.count < count:
        raise InputError(f"{cache.path}: holds {cache.count} rows, {count} are to be scored")
    if cache is not None:
        stored = cache.rows
        blocks = (stored[begin : min(begin + _REPORT, count)] for begin in range(0, count, _REPORT))
    else:
        blocks = (block for block in code.blocks(0, count, _REPORT))
    result = np.empty(count, dtype=np.int64)
    done = 0
    for block in blocks:
        result[done : done + len(block)] = sums(block, coefficients)
        done += len(block)
        if progress is not None:
            progress(done, count)
    return result


def top(totals: Integers, count: int) -> NDArray[np.intp]:
    """The rows with the largest sums, best first; of equal sums the smaller index first."""
    whole(count, "the number of rows", 0, INDEX_LIMIT)
    return np.argsort(-totals, kind="stable")[:count]
