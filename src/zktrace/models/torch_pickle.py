"""What the pickle of a torch checkpoint describes: tensors as views of storages, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from zktrace.errors import MalformedModel
from zktrace.models.dtypes import BY_STORAGE, BY_TAG
from zktrace.models.limits import Limits
from zktrace.models.pickle_machine import run
from zktrace.primitives.text import shown

_WRAPPERS = ("state_dict", "model_state_dict", "model")
# Element types of torch that a model may not have here: understood, so that the refusal can name the tensor.
_FOREIGN_STORAGES = {"ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}
_FOREIGN_DTYPES = {
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A global that may be called."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _ElementType:
    """A torch dtype."""

    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _StorageType:
    """A class of storages; an untyped one counts bytes and has no element type."""

    tag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A member `data/<key>` of the archive: `count` elements of type `tag`, or bytes if it has no type."""

    key: str
    tag: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """A tensor: the elements of a storage from `offset` on by `strides`. Nothing but types is checked yet."""

    storage: Storage
    tag: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_ORDERED_DICT = _Function(name="collections.OrderedDict")
_TENSOR_V2 = _Function(name="torch._utils._rebuild_tensor_v2")
_TENSOR_V3 = _Function(name="torch._utils._rebuild_tensor_v3")
_PARAMETER = _Function(name="torch._utils._rebuild_parameter")

_NAMES: Mapping[str, object] = (
    {each.name: each for each in (_ORDERED_DICT, _TENSOR_V2, _TENSOR_V3, _PARAMETER)}
    | {f"torch.{name}": _StorageType(tag=dtype.tag) for name, dtype in BY_STORAGE.items()}
    | {f"torch.{name}": _StorageType(tag=tag) for name, tag in _FOREIGN_STORAGES.items()}
    | {f"torch.{tag}": _ElementType(tag=tag) for tag in (*BY_TAG, *_FOREIGN_DTYPES)}
    | dict.fromkeys(("torch.storage.UntypedStorage", "torch.UntypedStorage"), _StorageType(tag=None))
)


def read_pickle(data: bytes, limits: Limits) -> dict[str, TensorView]:
    """The tensors of a checkpoint by name."""
    return _state_dict(run(data, _TorchWorld(), max_steps=limits.max_pickle_steps))


class _TorchWorld:
    """The only globals that exist, and what they make."""

    def __init__(self) -> None:
        self._storages: dict[str, Storage] = {}

    def name(self, module: str, name: str) -> object:
        known = _NAMES.get(f"{module}.{name}")
        if known is None:
            raise MalformedModel(
                f"the pickle names {shown(f'{module}.{name}')}, which is not allowed "
                "(a whole pickled module? save model.state_dict() instead)"
            )
        return known

    def call(self, function: object, arguments: tuple[object, ...]) -> object:
        if function == _ORDERED_DICT and not arguments:
            return {}
        if function == _TENSOR_V2 and len(arguments) == 6:
            return _typed_view(arguments)
        if function == _TENSOR_V3 and len(arguments) == 7:
            return _untyped_view(arguments)
        if function == _PARAMETER and len(arguments) == 3 and isinstance(arguments[0], TensorView):
            _check_training(arguments[0].tag, arguments[1], arguments[2])
            return arguments[0]
        what = shown(function.name) if isinstance(function, _Function) else "something that is not a function"
        raise MalformedModel(f"the pickle calls {what} with arguments that are not understood")

    def build(self, target: object, state: object) -> None:
        """A state dict carries its modules' versions as an attribute; they are no part of the state."""
        if not isinstance(target, dict) or not isinstance(state, dict) or state.keys() != {"_metadata"}:
            raise MalformedModel("the pickle sets attributes of something that is not a state dict")

    def persistent(self, reference: object) -> object:
        match reference:
            case ("storage", _StorageType(tag=tag), str(key), str(), int(count)) if count >= 0:
                storage = Storage(key=key, tag=tag, count=count)
            case _:
                raise MalformedModel("the pickle refers to something outside that is not a storage")
        if not (key.isascii() and key.isdigit()) or self._storages.setdefault(key, storage) != storage:
            raise MalformedModel(f"storage {shown(key)}: a wrong key, or described in two ways")
        return storage


def _typed_view(arguments: tuple[object, ...]) -> TensorView:
    storage, offset, shape, strides, gradient, hooks = arguments
    if not isinstance(storage, Storage) or storage.tag is None:
        raise MalformedModel("the pickle has a tensor without a typed storage")
    _check_training(storage.tag, gradient, hooks)
    return _view(storage, storage.tag, (offset,), shape, strides)


def _untyped_view(arguments: tuple[object, ...]) -> TensorView:
    storage, offset, shape, strides, gradient, hooks, dtype = arguments
    if not isinstance(storage, Storage) or storage.tag is not None or not isinstance(dtype, _ElementType):
        raise MalformedModel("the pickle has a tensor without an untyped storage or without an element type")
    _check_training(dtype.tag, gradient, hooks)
    return _view(storage, dtype.tag, (offset,), shape, strides)


def _view(storage: Storage, tag: str, offset: object, shape: object, strides: object) -> TensorView:
    sizes, steps, starts = _counts(shape), _counts(strides), _counts(offset)
    if sizes is None or steps is None or starts is None or len(sizes) != len(steps):
        raise MalformedModel("the pickle has a tensor whose shape, strides or offset make no sense")
    return TensorView(storage=storage, tag=tag, offset=starts[0], shape=sizes, strides=steps)


def _counts(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, tuple):
        return None
    counts = tuple(each for each in value if type(each) is int and 0 <= each < 1 << 63)
    return counts if len(counts) == len(value) else None


def _check_training(tag: str, gradient: object, hooks: object) -> None:
    """What a tensor says of its training is no part of the state, but torch must take it."""
    if hooks is not None and hooks != {}:
        raise MalformedModel("the pickle has a tensor with hooks")
    if gradient is not False and (gradient is not True or "float" not in tag):
        raise MalformedModel("the pickle has a tensor that cannot have the gradient it asks for")


def _state_dict(value: object) -> dict[str, TensorView]:
    """The mapping of names to tensors: the value itself, or the one entry of it that is such a mapping."""
    if not isinstance(value, dict):
        raise MalformedModel("the checkpoint is not a mapping; save model.state_dict()")
    if _is_state_dict(value):
        return value
    wrapped = {key: value[key] for key in _WRAPPERS if isinstance(value.get(key), dict)}
    found = [each for each in wrapped.values() if _is_state_dict(each)]
    if len(found) > 1:
        raise MalformedModel(f"the checkpoint has several state dicts among {', '.join(wrapped)}")
    if not found:
        raise _no_state_dict(next(iter(wrapped.values()), value))
    return found[0]


def _is_state_dict(value: Mapping[object, object]) -> TypeGuard[dict[str, TensorView]]:
    return all(isinstance(name, str) and isinstance(view, TensorView) for name, view in value.items())


def _no_state_dict(value: Mapping[object, object]) -> MalformedModel:
    for name, entry in value.items():
        if not isinstance(name, str) or not isinstance(entry, TensorView):
            what = "a tensor" if isinstance(entry, TensorView) else f"of type {type(entry).__name__}"
            return MalformedModel(
                f"the checkpoint is not a state dict: its entry {shown(str(name)[:81])} is {what}; "
                "save model.state_dict()"
            )
    return MalformedModel("the checkpoint is not a state dict; save model.state_dict()")
