"""Files of every kind, read by a capped child: as `open_model` reads them, and by nothing in this process."""

import errno
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from models import gguf_forge
from models.forge import EXAMPLE, checkpoint, entry, mapping, npz, pickle_of, safetensors, simple_checkpoint
from models.test_fuzz import rearranged
from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused, Unavailable
from zktrace.models import Limits, ModelState, model_digest, open_confined, open_model, save_model
from zktrace.models import open as opening
from zktrace.primitives import child

RNG = np.random.default_rng(5)


def q8(blocks: int) -> bytes:
    """So many blocks of 32 weights in 8 bits."""
    return b"".join(np.float16(0.5).tobytes() + RNG.bytes(32) for _ in range(blocks))


def safetensors_file() -> bytes:
    return safetensors(
        {"a": entry("BF16", [3], 0, 6), "b": entry("F32", [2, 2], 6, 22), "n": entry("I64", [], 22, 30)},
        RNG.bytes(30),
    )


def npz_file() -> bytes:
    buffer = io.BytesIO()
    square = np.arange(6.0).reshape(2, 3)
    np.savez(
        buffer, c=square, fortran=np.asfortranarray(square), big=square.astype(">f4"), flag=np.array([True])
    )
    return buffer.getvalue()


def onnx_file() -> bytes:
    tensors = [numpy_helper.from_array(value, name) for name, value in EXAMPLE.items()]
    tensors.append(helper.make_tensor("halves", onnx.TensorProto.FLOAT16, [3], [1.0, -2.0, 0.5]))
    graph = helper.make_graph([], "g", [], [], tensors)
    return helper.make_model(graph).SerializeToString()


def gguf_file() -> bytes:
    return gguf_forge.gguf({"plain": (0, (2, 3), RNG.bytes(24)), "blocks": (8, (2, 64), q8(4))})


KINDS = [safetensors_file, npz_file, onnx_file, gguf_file, simple_checkpoint]


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def refusal(path: Path, kind: type[Error] = MalformedModel, limits: Limits | None = None) -> str:
    with pytest.raises(kind) as caught:
        open_confined(path, limits or Limits())
    assert type(caught.value) is kind
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) <= 500
    assert said.startswith(f"{path}: ")
    return said


def outcome(read: Callable[[Path], ModelState], path: Path) -> tuple[str, bytes]:
    """The digest of what was read, or the kind of error and its words."""
    try:
        return "read", model_digest(read(path))
    except Error as error:
        return type(error).__name__, b""


@pytest.mark.parametrize("make", KINDS)
def test_the_child_reads_what_this_process_would_read(tmp_path: Path, make: Callable[[], bytes]) -> None:
    path = written(tmp_path / "m", make())
    found, known = open_confined(path), open_model(path)
    assert found == known
    assert len(known) > 0
    assert model_digest(found) == model_digest(known)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("make", KINDS)
def test_no_parser_sees_the_file_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], bytes]
) -> None:
    path = written(tmp_path / "m", make())
    expected = model_digest(open_model(path))

    def read_here(*given: object, **more: object) -> object:
        raise AssertionError("a parser was called in this process")

    for name in ("_read", "_mapped", "read_gguf", "read_onnx", "read_npz", "open_safetensors"):
        monkeypatch.setattr(opening, name, read_here)
    assert model_digest(open_confined(path)) == expected


@pytest.mark.parametrize("make", KINDS)
def test_damaged_files_end_alike_with_and_without_a_child(tmp_path: Path, make: Callable[[], bytes]) -> None:
    """Whatever `open_model` refuses the child refuses; what is lazy there is refused here when it is read."""
    data = make()
    cases = [*rearranged(data, 6, seed=11), b"", data[:1], data[: len(data) // 2]]
    for number, case in enumerate(random.Random(3).sample(cases, 7)):
        path = written(tmp_path / str(number), case)
        assert outcome(open_confined, path) == outcome(open_model, path), case[:200]


def test_an_index_opens_no_other_file(tmp_path: Path) -> None:
    save_model(tmp_path / "one.safetensors", {"a": np.ones(2, dtype=np.float32)})
    index = {"metadata": {}, "weight_map": {"a": "one.safetensors"}}
    path = written(tmp_path / "model.safetensors.index.json", json.dumps(index).encode())
    assert list(open_model(path)) == ["a"]  # as an operator's own file it may
    assert "index of a model in several files" in refusal(path, Refused)


def test_external_data_is_not_opened(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.ones(4, dtype=np.float32), "w")
    model = helper.make_model(helper.make_graph([], "g", [], [], [tensor]))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=1)
    assert list(open_model(path)) == ["w"]
    assert "'weights.bin'" in refusal(path, Refused)


def test_what_is_no_model_and_what_is_no_file(tmp_path: Path) -> None:
    assert "is empty" in refusal(written(tmp_path / "empty", b""))
    assert "not a model file" in refusal(written(tmp_path / "text", b"hello " * 100))
    assert "a bare pickle" in refusal(written(tmp_path / "pickle", b"\x80\x04N."))
    assert "cannot be read" in refusal(tmp_path / "nowhere", Refused)
    assert "is not a regular file" in refusal(tmp_path, Refused)
    assert "the limit is 3" in refusal(
        written(tmp_path / "l", b"1234"), LimitExceeded, Limits(max_file_bytes=3)
    )
    large = written(tmp_path / "m.pt", simple_checkpoint())
    assert "save it as safetensors" in refusal(large, LimitExceeded, Limits(max_loaded_bytes=100))


def test_what_is_quantised_has_to_have_room_when_it_is_unpacked(tmp_path: Path) -> None:
    path = written(tmp_path / "m.gguf", gguf_forge.gguf({"w": (8, (64, 64), q8(128))}))
    limits = Limits(max_loaded_bytes=1000, max_header_bytes=4096)
    assert "take 16384 bytes when they are unpacked" in refusal(path, LimitExceeded, limits)
    assert open_confined(path, Limits(max_loaded_bytes=8192, max_header_bytes=4096))["w"].shape == (64, 64)


def test_memory_that_a_file_would_take_is_not_taken_here(tmp_path: Path) -> None:
    """A pickle of two million empty tables: the child runs out of what it may use."""
    bomb = written(tmp_path / "m.pt", checkpoint(pickle_of(b"}" * 2_000_000), {}))
    limits = Limits(child_spare_bytes=224 << 20)
    good = open_confined(written(tmp_path / "g.npz", npz({"w": np.ones(3)})), limits)
    assert good["w"].tolist() == [1, 1, 1]
    assert "more memory or disk" in refusal(bomb, LimitExceeded, limits)


def test_time_that_a_file_would_take_is_not_taken_here(tmp_path: Path) -> None:
    from models.test_torch_file import slow_checkpoint

    path = written(tmp_path / "m.pt", slow_checkpoint())
    assert "more time or space" in refusal(path, LimitExceeded, Limits(child_cpu_seconds=1))
    assert "longer than 1 seconds" in refusal(path, LimitExceeded, Limits(child_wall_seconds=1))


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, Unavailable), (errno.EDQUOT, Unavailable), (errno.EIO, Refused)]
)
def test_a_full_disk_is_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Error]
) -> None:
    full = f"""
    import os
    from zktrace.primitives import child
    def failing():
        raise OSError({number}, os.strerror({number}))
    child.answering(child.Caps(address_bytes=1 << 30, cpu_seconds=5, answer_bytes=10), failing)
    """
    boot = child._BOOT.replace(
        "importlib.import_module(entry).main(argument)",
        "\n".join(line[4:] for line in full.splitlines()),
    )
    assert boot != child._BOOT
    monkeypatch.setattr(child, "_BOOT", boot)
    path = written(tmp_path / "m", safetensors_file())
    assert os.strerror(number).lower() in refusal(path, kind)
    assert list(tmp_path.iterdir()) == [path]


def test_a_pickle_in_a_checkpoint_is_not_unpickled(tmp_path: Path) -> None:
    path = written(tmp_path / "m.pt", checkpoint(pickle_of(mapping({"w": b"cos\ngetcwd\n)R"})), {}))
    assert "'os.getcwd'" in refusal(path)
