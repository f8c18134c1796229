"""Rewrites that keep what a transformer with RMSNorm and without biases computes.

    heads       change places, and inside a head the numbers of q with k and of v with o
    sizes       q times f and k divided by it; v and o; what stands before and behind a ReLU, or beside a gate
    the stream  is turned by any orthogonal matrix, once the scales of the norms stand in the matrices behind

A `Graph` says under which names a network has its tensors, and that is all that has to be known of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.rewrite import LARGEST_SPREAD, LARGEST_STATE
from zktrace.attacks.rotation import orthogonal
from zktrace.errors import InputError, LimitExceeded
from zktrace.learning.arrays import Arrays, State

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Names of a transformer's tensors; {} stands for the number of a block."""

    heads: int
    enters: tuple[str, ...]  # what is in the stream first: its last axis is the stream
    filters: tuple[str, ...] = ()  # the same for convolutions: their first axis
    query: str = "blocks.{}.attn.q.weight"
    key: str = "blocks.{}.attn.k.weight"
    value: str = "blocks.{}.attn.v.weight"
    out: str = "blocks.{}.attn.o.weight"
    up: str = "blocks.{}.mlp.up.weight"
    gate: str = ""  # beside `up`, if there is one; a ReLU is between `up` and `down` otherwise
    down: str = "blocks.{}.mlp.down.weight"
    before_attention: str = "blocks.{}.norm1.weight"
    before_layers: str = "blocks.{}.norm2.weight"
    norm: str = "norm.weight"
    head: str = "head.weight"


LANGUAGE: Final = Graph(heads=4, enters=("embed.weight",))
VISION: Final = Graph(heads=4, enters=("pos", "cls"), filters=("patch.weight",))
GRAPHS: Final = {"language": LANGUAGE, "vision": VISION}
WAYS: Final = ("permuted", "rescaled", "rotated")


def disguise(
    state: Arrays,
    graph: str,
    rng: np.random.Generator,
    *,
    how: Sequence[str] | None = None,
    heads: int = 4,
    spread: float = 1.0,
) -> State:
    """One rewrite after the other, all of them unless told which, of a network with a ready-made graph."""
    ways = WAYS if how is None else tuple(how)
    if graph not in GRAPHS:
        raise InputError(f"no graph {graph!r}; known: {', '.join(GRAPHS)}")
    if not ways or not set(ways) <= set(WAYS):
        raise InputError(f"a rewrite is one or more of {', '.join(WAYS)}")
    known = replace(GRAPHS[graph], heads=heads)
    made = dict(state)
    for each in ways:
        if each == "permuted":
            made = permute_heads(made, known, rng)
        elif each == "rescaled":
            made = rescale_heads(made, known, rng, spread=spread)
        else:
            made = rotate_stream(made, known, rng)
    return made


def permute_heads(state: Arrays, graph: Graph, rng: np.random.Generator) -> State:
    """Heads in another order, numbers inside heads too, and hidden units."""
    done = _Disguising(state, graph)
    for block in done.blocks:
        width = len(done[graph.query.format(block)])
        size = width // graph.heads
        heads = rng.permutation(graph.heads)
        for writers, reader in (((graph.query, graph.key), ""), ((graph.value,), graph.out)):
            inside = np.concatenate([each * size + rng.permutation(size) for each in heads])
            done.reorder(block, writers, reader, inside)
        hidden = rng.permutation(len(done[graph.up.format(block)]))
        done.reorder(block, done.layers, graph.down, hidden)
    return done.state()


def rescale_heads(state: Arrays, graph: Graph, rng: np.random.Generator, *, spread: float = 1.0) -> State:
    """Numbers inside heads and hidden units times exp(spread N(0, 1)), and back where they are used.

    In heads and beside a gate signs are turned as well; a ReLU lets no sign pass.
    """
    if not 0.0 < spread <= LARGEST_SPREAD:
        raise InputError(f"a spread of {spread}: must lie above 0 and at most at {LARGEST_SPREAD:g}")
    done = _Disguising(state, graph)
    for block in done.blocks:
        width = len(done[graph.query.format(block)])
        keys, values = np.exp(spread * rng.standard_normal((2, width))) * rng.choice([-1.0, 1.0], (2, width))
        done.scale(block, graph.query, keys, axis=0)
        done.scale(block, graph.key, 1 / keys, axis=0)
        done.scale(block, graph.value, values, axis=0)
        done.scale(block, graph.out, 1 / values, axis=1)
        hidden = np.exp(spread * rng.standard_normal(len(done[graph.up.format(block)])))
        if graph.gate:
            hidden *= rng.choice([-1.0, 1.0], len(hidden))
        done.scale(block, graph.up, hidden, axis=0)
        done.scale(block, graph.down, 1 / hidden, axis=1)
    return done.state()


def rotate_stream(state: Arrays, graph: Graph, rng: np.random.Generator) -> State:
    """Scales of norms into the matrices behind them, then the whole stream turned at random."""
    done = _Disguising(state, graph)
    readers: list[tuple[str, tuple[str, ...]]] = [(graph.norm, (graph.head,))]
    for block in done.blocks:
        attention = tuple(each.format(block) for each in (graph.query, graph.key, graph.value))
        readers.append((graph.before_attention.format(block), attention))
        layers = tuple(each.format(block) for each in done.layers)
        readers.append((graph.before_layers.format(block), layers))
    turn = orthogonal(len(done[graph.norm]), rng)
    for norm, weights in readers:
        for name in weights:
            done[name] = done[name] * done[norm] @ turn
        done[norm] = np.ones_like(done[norm])
    for name in graph.enters:
        done[name] = done[name] @ turn
    writers = [each.format(block) for block in done.blocks for each in (graph.out, graph.down)]
    for name in (*graph.filters, *writers):
        done[name] = np.tensordot(turn.T, done[name], axes=1)
    return done.state()


class _Disguising:
    """A state in double precision while it is rewritten."""

    def __init__(self, state: Arrays, graph: Graph) -> None:
        self._graph = graph
        self._types = {name: array.dtype for name, array in state.items()}
        pattern = re.compile(re.escape(graph.query).replace(r"\{\}", "([0-9]{1,4})"))
        self.blocks = sorted(int(found.group(1)) for found in map(pattern.fullmatch, state) if found)
        self.layers = (graph.up, graph.gate) if graph.gate else (graph.up,)
        needed = list(self._needed())
        for name in needed:
            if name not in state or state[name].dtype.kind != "f" or not state[name].ndim:
                raise InputError(f"the state lacks {name!r}: not a transformer of this graph")
        if sum(state[name].size for name in needed) > LARGEST_STATE:
            raise LimitExceeded(f"a model of more than {LARGEST_STATE} numbers is not rewritten")
        self._arrays = {
            name: array.astype(np.float64) if name in needed else np.array(array)
            for name, array in state.items()
        }
        self._check_shapes()

    def __getitem__(self, name: str) -> Floats:
        return self._arrays[name]

    def __setitem__(self, name: str, array: Floats) -> None:
        self._arrays[name] = array

    def _needed(self) -> Iterator[str]:
        graph = self._graph
        yield from (*graph.enters, *graph.filters, graph.norm, graph.head)
        inside = (graph.query, graph.key, graph.value, graph.out, *self.layers, graph.down)
        for block in self.blocks:
            yield from (each.format(block) for each in (*inside, graph.before_attention, graph.before_layers))

    def _check_shapes(self) -> None:
        graph, width = self._graph, self[self._graph.norm].size
        rows = self[graph.head].shape[0] if self[graph.head].ndim else 0
        shapes: dict[str, tuple[int, ...]] = {graph.norm: (width,), graph.head: (rows, width)}
        for block in self.blocks:
            inner, hidden = (self[each.format(block)].shape[0] for each in (graph.query, graph.up))
            if inner % graph.heads:
                raise InputError(f"block {block}: {inner} numbers are not {graph.heads} heads")
            shapes |= {each.format(block): (inner, width) for each in (graph.query, graph.key, graph.value)}
            shapes |= {each.format(block): (hidden, width) for each in self.layers}
            shapes |= {graph.out.format(block): (width, inner), graph.down.format(block): (width, hidden)}
            shapes |= {each.format(block): (width,) for each in (graph.before_attention, graph.before_layers)}
        shapes |= {name: (*self[name].shape[:-1], width) for name in graph.enters}
        shapes |= {name: (width, *self[name].shape[1:]) for name in graph.filters}
        for name, shape in shapes.items():
            if self[name].shape != shape:
                raise InputError(f"{name!r} has shape {self[name].shape}, in this graph it is {shape}")

    def reorder(self, block: int, writers: tuple[str, ...], reader: str, order: NDArray[np.int64]) -> None:
        """Rows of the writers, and columns of the reader, in another order."""
        for each in writers:
            self[each.format(block)] = self[each.format(block)][order]
        if reader:
            self[reader.format(block)] = self[reader.format(block)][:, order]

    def scale(self, block: int, pattern: str, factors: Floats, *, axis: int) -> None:
        """Rows or columns of one tensor times factors."""
        self[pattern.format(block)] = self[pattern.format(block)] * (factors if axis else factors[:, None])

    def state(self) -> State:
        """In the types and the order of the state that was given."""
        with np.errstate(over="ignore"):  # refused below
            made = {name: array.astype(self._types[name]) for name, array in self._arrays.items()}
        for name, array in made.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(f"{name!r} would have numbers that are not finite: a smaller spread")
        return made
