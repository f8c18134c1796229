"""A pickle read as data: a stack machine that calls nothing but the four methods of a `World`.

It never imports what a pickle names. An opcode that is not in the table below, or a name that the world does
not know, ends the reading. There is no recursion, so depth is bounded by the number of steps.
"""

import struct
from collections.abc import Callable
from typing import Protocol

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.primitives.text import shown

_MAX_PROTOCOL = 5
_MAX_LINE = 256


class World(Protocol):
    """What the names in a pickle mean. Each method raises `MalformedModel` for what it does not know."""

    def name(self, module: str, name: str) -> object:
        """The inert value that stands for a global."""

    def call(self, function: object, arguments: tuple[object, ...]) -> object:
        """What a global makes of its arguments."""

    def build(self, target: object, state: object) -> None:
        """Attributes set on an object."""

    def persistent(self, reference: object) -> object:
        """What lies outside the pickle."""


def run(data: bytes, world: World, *, max_steps: int) -> object:
    """The value that a pickle describes."""
    return _Machine(data, world).run(max_steps)


class _Machine:
    def __init__(self, data: bytes, world: World) -> None:
        self._data = data
        self._at = 0
        self._world = world
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def run(self, max_steps: int) -> object:
        for _ in range(max_steps):
            code = self._take(1)[0]
            if code == _STOP:
                return self._result()
            operation = _OPERATIONS.get(code)
            if operation is None:
                raise MalformedModel(
                    f"pickle opcode {_opcode_name(code)} at byte {self._at - 1} is not allowed"
                )
            operation(self)
        raise LimitExceeded(f"the pickle takes more than {max_steps} steps")

    def _result(self) -> object:
        value = self._pop()
        if self._stack or self._marks or self._at != len(self._data):
            raise MalformedModel("the pickle has something left over at its end")
        return value

    # -- reading

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) != size:
            raise MalformedModel("the pickle ends too early")
        self._at += size
        return piece

    def _number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + _MAX_LINE)
        if end < 0:
            raise MalformedModel("the pickle has a name without an end")
        return self._text(end - self._at, skip=1)

    def _text(self, size: int, *, skip: int = 0) -> str:
        try:
            text = self._take(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedModel("the pickle has text that is not UTF-8") from error
        self._at += skip
        return text

    # -- the stack

    def _pop(self) -> object:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise MalformedModel("the pickle takes more from its stack than there is")
        return self._stack.pop()

    def _pop_to_mark(self) -> list[object]:
        if not self._marks:
            raise MalformedModel("the pickle refers to a mark that is not there")
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    def _top(self) -> object:
        value = self._pop()
        self._stack.append(value)
        return value

    # -- operations

    def push(self, value: object) -> None:
        self._stack.append(value)

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def protocol(self) -> None:
        version = self._number(1)
        if version > _MAX_PROTOCOL:
            raise MalformedModel(f"pickle protocol {version} is unknown")

    def frame(self) -> None:
        self._take(8)  # a hint for readers of streams

    def integer(self, size: int, *, signed: bool = False) -> None:
        self.push(self._number(size, signed=signed))

    def long_integer(self) -> None:
        self.push(self._number(self._number(1), signed=True))

    def floating(self) -> None:
        self.push(struct.unpack(">d", self._take(8))[0])

    def text(self, size: int) -> None:
        self.push(self._text(self._number(size)))

    def tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def tuple_to_mark(self) -> None:
        self.push(tuple(self._pop_to_mark()))

    def append(self) -> None:
        value = self._pop()
        self._list().append(value)

    def appends(self) -> None:
        values = self._pop_to_mark()
        self._list().extend(values)

    def _list(self) -> list[object]:
        target = self._top()
        if not isinstance(target, list):
            raise MalformedModel("the pickle appends to something that is not a list")
        return target

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set([key, value])

    def set_items(self) -> None:
        self._set(self._pop_to_mark())

    def _set(self, pairs: list[object]) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(pairs) % 2:
            raise MalformedModel("the pickle sets items of something that is not a mapping")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) not in (str, int):
                raise MalformedModel("the pickle has a mapping whose keys are neither text nor integers")
            if key in target:
                raise MalformedModel(f"the pickle has the key {shown(str(key)[:80])} twice")
            target[key] = value

    def put(self, size: int) -> None:
        index = self._number(size)
        self._memo[index] = self._top()

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def get(self, size: int) -> None:
        index = self._number(size)
        if index not in self._memo:
            raise MalformedModel(f"the pickle refers to its memo at {index}, where nothing is")
        self.push(self._memo[index])

    def global_lines(self) -> None:
        module = self._line()
        self.push(self._world.name(module, self._line()))

    def global_stack(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise MalformedModel("the pickle names a global by something that is not text")
        self.push(self._world.name(module, name))

    def reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(arguments, tuple):
            raise MalformedModel("the pickle calls something with arguments that are not a tuple")
        self.push(self._world.call(function, arguments))

    def build(self) -> None:
        state = self._pop()
        self._world.build(self._top(), state)

    def persistent(self) -> None:
        self.push(self._world.persistent(self._pop()))


_STOP = ord(".")
_OPERATIONS: dict[int, Callable[[_Machine], None]] = {
    0x80: _Machine.protocol,
    0x95: _Machine.frame,
    ord("N"): lambda machine: machine.push(None),
    0x88: lambda machine: machine.push(True),
    0x89: lambda machine: machine.push(False),
    ord("K"): lambda machine: machine.integer(1),
    ord("M"): lambda machine: machine.integer(2),
    ord("J"): lambda machine: machine.integer(4, signed=True),
    0x8A: _Machine.long_integer,
    ord("G"): _Machine.floating,
    0x8C: lambda machine: machine.text(1),
    ord("X"): lambda machine: machine.text(4),
    0x8D: lambda machine: machine.text(8),
    ord("("): _Machine.mark,
    ord(")"): lambda machine: machine.push(()),
    0x85: lambda machine: machine.tuple_of(1),
    0x86: lambda machine: machine.tuple_of(2),
    0x87: lambda machine: machine.tuple_of(3),
    ord("t"): _Machine.tuple_to_mark,
    ord("]"): lambda machine: machine.push([]),
    ord("a"): _Machine.append,
    ord("e"): _Machine.appends,
    ord("}"): lambda machine: machine.push({}),
    ord("s"): _Machine.set_item,
    ord("u"): _Machine.set_items,
    ord("q"): lambda machine: machine.put(1),
    ord("r"): lambda machine: machine.put(4),
    0x94: _Machine.memoize,
    ord("h"): lambda machine: machine.get(1),
    ord("j"): lambda machine: machine.get(4),
    ord("c"): _Machine.global_lines,
    0x93: _Machine.global_stack,
    ord("R"): _Machine.reduce,
    ord("b"): _Machine.build,
    ord("Q"): _Machine.persistent,
}


def _opcode_name(code: int) -> str:
    """The name that the standard library gives an opcode, for a message only."""
    import pickletools  # noqa: PLC0415  (only on the way to a refusal: keeps the child's start short)

    names = [each.name for each in pickletools.opcodes if each.code == chr(code)]
    return f"{names[0] if names else 'unknown'} (0x{code:02x})"
