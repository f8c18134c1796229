"""Model files of up to 100 MB that ask for far more memory than they have bytes: sparse zeros."""

import struct
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from models.forge import mapping, pickle_of, storage, tensor
from zktrace.models.dtypes import BY_TAG
from zktrace.models.safetensors_header import Slot, build_header, file_order
from zktrace.readouts.scales import MAX_SCALES

Arrays = dict[str, tuple[str, tuple[int, ...]]]  # name -> (element type, shape)
Make = Callable[[Path], Path]

LARGE = 100_000_000


def safetensors(path: Path, arrays: Arrays) -> Path:
    """A file of zeros, written without writing them."""
    layouts = [_layout(name, *what) for name, what in arrays.items()]
    layouts.sort(key=file_order)
    header = build_header(layouts)
    with path.open("wb") as handle:
        handle.write(header)
        handle.truncate(len(header) + sum(each.size for each in layouts))
    return path


def _layout(name: str, tag: str, shape: tuple[int, ...]) -> Slot:
    dtype = BY_TAG[tag]
    return Slot(name=name, dtype=dtype, shape=shape, size=int(np.prod(shape)) * dtype.size)


def norms(names: Iterable[str], size: int, tag: str = "float16") -> Arrays:
    """BatchNorm layers of `size` scales each."""
    return {f"{name}.{part}": (tag, (size,)) for name in names for part in ("weight", "running_var")}


def one_wide_layer(path: Path, size: int = 2_000_000) -> Path:
    """8 MB, if nothing else is said."""
    return safetensors(path, norms(["bn1"], size))


def widest_that_is_read(path: Path) -> Path:
    """As many scales as are allowed."""
    return one_wide_layer(path, MAX_SCALES)


def wide_layers(path: Path) -> Path:
    """100 MB of scales in 25 layers."""
    return safetensors(path, norms((f"layer{at}.bn1" for at in range(25)), 999_000, "bfloat16"))


def many_views(path: Path, layers: int = 1300, size: int = 370_000) -> Path:
    """A torch zip of 750 kB whose scales are all views of one storage."""
    views = {}
    for at in range(layers):
        for part, shape in (("weight", size), ("running_var", size)):
            views[f"bn{at}.{part}"] = tensor(storage("0", size, "HalfStorage"), (shape,), (1,))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", pickle_of(mapping(views)))
        archive.writestr("a/data/0", b"\x00\x3c" * size)
        archive.writestr("a/version", "3\n")
    return path


def wide_torch(path: Path, size: int = 16_000_000) -> Path:
    """A torch zip of 64 MB with one wide layer."""
    views = {f"bn1.{part}": tensor(storage("0", size, "HalfStorage"), (size,), (1,)) for part in ("weight",)}
    views["bn1.running_var"] = tensor(storage("1", size, "HalfStorage"), (size,), (1,))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", pickle_of(mapping(views)))
        archive.writestr("a/data/0", bytes(2 * size))
        archive.writestr("a/data/1", bytes(2 * size))
        archive.writestr("a/version", "3\n")
    return path


def resnet(width: int, tag: str = "float16", channels: int = 4) -> Arrays:
    """The arrays of a ResNet-18 of this package."""
    found: Arrays = {"conv1.weight": (tag, (width, channels, 7, 7))}
    layers = {"bn1": width}
    ins = width
    for stage in range(4):
        outs = width << stage
        for block in range(2):
            name = f"layer{stage + 1}.{block}"
            found[f"{name}.conv1.weight"] = (tag, (outs, ins, 3, 3))
            found[f"{name}.conv2.weight"] = (tag, (outs, outs, 3, 3))
            layers |= {f"{name}.bn1": outs, f"{name}.bn2": outs}
            if stage and not block:
                found[f"{name}.downsample.0.weight"] = (tag, (outs, ins, 1, 1))
                layers[f"{name}.downsample.1"] = outs
            ins = outs
    for name, size in layers.items():
        found |= {
            f"{name}.{part}": (tag, (size,)) for part in ("weight", "bias", "running_mean", "running_var")
        }
        found[f"{name}.num_batches_tracked"] = ("int64", ())
    return found


def wide_resnet(path: Path) -> Path:
    """The widest ResNet-18 that 100 MB hold in half precision."""
    return safetensors(path, resnet(128))


def integer_resnet(path: Path) -> Path:
    """A wider one, in bytes: four or eight times as much in real numbers."""
    return safetensors(path, resnet(180, "int8"))


def huge_head(path: Path) -> Path:
    """A narrow ResNet with a last layer of five million outputs."""
    head: Arrays = {"fc.weight": ("float16", (5_000_000, 8)), "fc.bias": ("float16", (5_000_000,))}
    return safetensors(path, resnet(1) | head)


def one_wide_array(path: Path) -> Path:
    """100 MB in one convolution, beside a small BatchNorm layer."""
    return safetensors(path, norms(["bn1"], 64) | {"conv1.weight": ("float16", (64, 700_000, 1, 1))})


def many_names(path: Path) -> Path:
    """As many layers as names fit a header, each name hard to sort."""
    names = (f"{at:05d}" + "1a" * 40 for at in range(30_000))
    return safetensors(path, norms(names, 1))


def turned_npz(path: Path, size: int = 24_000_000) -> Path:
    """A big-endian array in Fortran order, which has to be turned."""
    with zipfile.ZipFile(path, "w") as archive:
        text = f"{{'descr': '>f2', 'fortran_order': True, 'shape': (2, {size}), }}\n".encode()
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
        archive.writestr("bn1.weight.npy", head + bytes(4 * size))
    return path
