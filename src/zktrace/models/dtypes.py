"""The element types a model may have, and what each container calls them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """One allowed element type. `tag` is its name in the digest and in `Tensor.dtype`."""

    tag: str  # also the name of the torch dtype
    size: int  # bytes an element
    safetensors: str
    numpy: str  # kind letter of the array in memory; bfloat16 is held as its bits
    storage: str | None  # typed storage class of a torch checkpoint, if torch has one


def _dtype(tag: str, size: int, safetensors: str, numpy: str, storage: str | None = None) -> Dtype:
    return Dtype(tag=tag, size=size, safetensors=safetensors, numpy=numpy, storage=storage)


DTYPES = (
    _dtype("float64", 8, "F64", "f", "DoubleStorage"),
    _dtype("float32", 4, "F32", "f", "FloatStorage"),
    _dtype("float16", 2, "F16", "f", "HalfStorage"),
    _dtype("bfloat16", 2, "BF16", "u", "BFloat16Storage"),
    _dtype("int64", 8, "I64", "i", "LongStorage"),
    _dtype("int32", 4, "I32", "i", "IntStorage"),
    _dtype("int16", 2, "I16", "i", "ShortStorage"),
    _dtype("int8", 1, "I8", "i", "CharStorage"),
    _dtype("uint64", 8, "U64", "u"),
    _dtype("uint32", 4, "U32", "u"),
    _dtype("uint16", 2, "U16", "u"),
    _dtype("uint8", 1, "U8", "u", "ByteStorage"),
    _dtype("bool", 1, "BOOL", "b", "BoolStorage"),
)

BY_TAG = {dtype.tag: dtype for dtype in DTYPES}
BY_SAFETENSORS = {dtype.safetensors: dtype for dtype in DTYPES}
BY_STORAGE = {dtype.storage: dtype for dtype in DTYPES if dtype.storage is not None}
BY_NUMPY = {(dtype.numpy, dtype.size): dtype for dtype in DTYPES if dtype.tag != "bfloat16"}

ALLOWED = ", ".join(dtype.tag for dtype in DTYPES)
