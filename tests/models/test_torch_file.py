"""Real torch files through the real child process, and a child that turned against us."""

import os
import pickle
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.forge import checkpoint, glob, mapping, pickle_of, simple_checkpoint, storage, tensor, text, tup
from zktrace.errors import Error, LimitExceeded, MalformedModel
from zktrace.models import Limits, ModelState, model_digest, open_model
from zktrace.primitives import child

LIMITS_REPORT = """
    import resource
    kinds = ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "NPROC")
    from zktrace.models.torch_child import caps
    from zktrace.models.limits import Limits
    from zktrace.primitives.child import cap, refuse
    from zktrace.errors import MalformedModel
    limits = Limits(max_total_bytes=1000, max_header_bytes=500, child_spare_bytes=1 << 30)
    cap(caps(limits, file_bytes=10))
    refuse(MalformedModel, str([resource.getrlimit(getattr(resource, "RLIMIT_" + kind)) for kind in kinds]))
"""


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def refusal(path: Path, kind: type[Error] = MalformedModel, limits: Limits | None = None) -> str:
    with pytest.raises(kind) as caught:
        open_model(path, limits or Limits())
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500
    return str(caught.value)


# -- files that torch wrote


def small_resnet() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    return torch.nn.Sequential(
        OrderedDict(
            conv1=torch.nn.Conv2d(3, 8, 3, bias=False),
            bn1=torch.nn.BatchNorm2d(8),
            block=torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()),
            fc=torch.nn.Linear(8, 5),
        )
    )


def numpy_state(state: Any) -> ModelState:
    return ModelState.from_arrays({name: value.detach().numpy() for name, value in state.items()})


def saved(tmp_path: Path, value: Any, **options: Any) -> ModelState:
    torch = pytest.importorskip("torch")
    torch.save(value, tmp_path / "m.pt", **options)
    return open_model(tmp_path / "m.pt")


def test_a_state_dict_has_the_same_digest_in_every_container(tmp_path: Path) -> None:
    weights = small_resnet().state_dict()
    expected = numpy_state(weights)
    assert expected["bn1.num_batches_tracked"].dtype == np.int64
    pytest.importorskip("safetensors.torch").save_file(weights, tmp_path / "m.safetensors")
    np.savez(tmp_path / "m.npz", **{name: value.numpy() for name, value in weights.items()})
    states = [
        saved(tmp_path, weights),
        open_model(tmp_path / "m.safetensors"),
        open_model(tmp_path / "m.npz"),
    ]
    for state in states:
        assert state == expected
        assert model_digest(state) == model_digest(expected)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    weights = small_resnet().state_dict()
    assert saved(tmp_path, weights, pickle_protocol=protocol) == numpy_state(weights)


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_training_checkpoint_is_read(tmp_path: Path, key: str) -> None:
    torch = pytest.importorskip("torch")
    model = small_resnet()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3, 5, 12)).sum().backward()
    optimizer.step()
    value = {
        "epoch": 3,
        key: model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "best": 0.5,
        "who": None,
    }
    assert saved(tmp_path, value) == numpy_state(model.state_dict())


def test_memory_formats_views_and_shared_storages_are_read_as_their_values(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0)
    value = {
        "channels_last": torch.randn(4, 3, 5, 2).to(memory_format=torch.channels_last),
        "transposed": torch.randn(3, 4).t(),
        "permuted": torch.randn(2, 3, 4, 5).permute(2, 0, 3, 1),
        "whole": base,
        "slice": base[5:11],
        "every_third": base[::3],
        "tied": base.view(4, 6),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
    }
    assert saved(tmp_path, value) == numpy_state(value)


def test_every_element_type_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    names = [
        "float64",
        "float32",
        "float16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint64",
        "uint32",
        "uint16",
        "uint8",
        "bool",
    ]
    value = {name: torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in names}
    assert saved(tmp_path, value) == numpy_state(value)


def test_bfloat16_stays_bfloat16(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = {"w": torch.randn(3, 4).to(torch.bfloat16), "t": torch.randn(3, 4).to(torch.bfloat16).t()}
    state = saved(tmp_path, value)
    assert {tensor.dtype for tensor in state.tensors()} == {"bfloat16"}
    for name, each in value.items():
        assert np.array_equal(state[name], each.float().numpy())
    pytest.importorskip("safetensors.torch").save_file(
        {name: each.contiguous() for name, each in value.items()}, tmp_path / "m.safetensors"
    )
    assert model_digest(open_model(tmp_path / "m.safetensors")) == model_digest(state)


def test_a_checkpoint_without_crcs_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        assert saved(tmp_path, {"w": torch.arange(4.0)})["w"].tolist() == [0, 1, 2, 3]
    finally:
        torch.serialization.set_crc32_options(before)


@pytest.mark.parametrize("name", ["complex64", "complex128", "float8_e4m3fn", "float8_e5m2"])
def test_other_element_types_are_refused_by_name(tmp_path: Path, name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"layer.w": torch.zeros(2, dtype=getattr(torch, name))}, tmp_path / "m.pt")
    reason = refusal(tmp_path / "m.pt")
    assert "'layer.w'" in reason
    assert name in reason


def test_whole_modules_scripts_expanded_tensors_and_old_files_are_refused_with_the_remedy(
    tmp_path: Path,
) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module")
    assert "torch.nn.modules.linear.Linear" in refusal(tmp_path / "module")
    assert "state_dict()" in refusal(tmp_path / "module")
    torch.save({"w": torch.ones(1).expand(1000)}, tmp_path / "expanded")
    assert "'w'" in refusal(tmp_path / "expanded")
    torch.save({"w": torch.ones(1)}, tmp_path / "old", _use_new_zipfile_serialization=False)
    assert "old format" in refusal(tmp_path / "old")
    torch.save({"w": torch.ones(1).to_sparse()}, tmp_path / "sparse")
    assert "_rebuild_sparse_tensor" in refusal(tmp_path / "sparse")


# -- files that somebody else wrote


class Touch:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.system, (f"touch {self.path}",)


def test_a_command_in_a_pickle_is_named_and_not_run(tmp_path: Path) -> None:
    target = tmp_path / "created"
    attack = pickle.dumps({"w": Touch(target)}, 2)
    assert f"{os.system.__module__}.system" in refusal(write(tmp_path / "a", checkpoint(attack, {})))
    by_hand = pickle_of(glob("os", "system") + tup(text(f"touch {target}")) + b"R")
    assert "'os.system'" in refusal(write(tmp_path / "b", checkpoint(by_hand, {})))
    assert not target.exists()
    pickle.loads(attack)  # the attack is real: unpickling runs it
    assert target.exists()


def test_a_stride_of_zero_does_not_allocate(tmp_path: Path) -> None:
    view = tensor(storage("0", 6), (10**12,), (0,))
    data = checkpoint(pickle_of(mapping({"w": view})), {"0": bytes(24)})
    assert "'w'" in refusal(write(tmp_path / "m", data), LimitExceeded)


def test_hostile_names_arrive_escaped_and_cut(tmp_path: Path) -> None:
    name = "\x1b[31m\n\u202e" + "a" * 100_000
    data = checkpoint(pickle_of(mapping({name: b"N"})), {})
    reason = refusal(write(tmp_path / "m", data))
    assert "\\x1b[31m\\n\\u202eaaa" in reason


# -- the child's resources


def slow_checkpoint() -> bytes:
    """2^24 bytes turned round over 8 dimensions: many seconds of copying lines of 8."""
    strides = tuple(8**axis for axis in range(8))
    view = tensor(storage("0", 1 << 24, "ByteStorage"), (8,) * 8, strides)
    return checkpoint(pickle_of(mapping({"w": view})), {"0": bytes(1 << 24)})


def test_processor_time_is_capped(tmp_path: Path) -> None:
    path = write(tmp_path / "m", slow_checkpoint())
    assert "more time or space" in refusal(path, LimitExceeded, Limits(child_cpu_seconds=1))


def test_time_is_capped(tmp_path: Path) -> None:
    path = write(tmp_path / "m", slow_checkpoint())
    assert "longer than 1 seconds" in refusal(path, LimitExceeded, Limits(child_wall_seconds=1))


def test_memory_is_capped(tmp_path: Path) -> None:
    path = write(tmp_path / "m", checkpoint(pickle_of(b"}" * 2_000_000), {}))
    assert "more memory or disk" in refusal(path, LimitExceeded, Limits(child_spare_bytes=96 << 20))


def rigged(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run `code` instead of reading the file."""
    lines = [line.strip() for line in code.strip().splitlines()]
    boot = child._BOOT.replace("importlib.import_module(entry).main(argument)", "\n".join(lines))
    assert boot != child._BOOT
    monkeypatch.setattr(child, "_BOOT", boot)


def test_every_cap_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rigged(monkeypatch, LIMITS_REPORT)
    caps = [(1 << 30) + 20, 60, 1500, 16, 0, 0]
    assert str([(cap, cap) for cap in caps]) in refusal(write(tmp_path / "m", simple_checkpoint()))


def test_the_child_has_no_third_party_code_no_environment_and_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZKTRACE_SECRET", "hunter2")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rigged(
        monkeypatch,
        """
        import importlib.util, os
        from zktrace.primitives.child import refuse
        from zktrace.errors import MalformedModel
        found = [name for name in ("numpy", "torch", "safetensors", "pip") if importlib.util.find_spec(name)]
        heavy = [name for name in ("numpy", "pickle", "_pickle", "torch", "ctypes") if name in sys.modules]
        inherited = [n for n in range(3, 64) if os.path.exists(f"/dev/fd/{n}")][1:]
        refuse(MalformedModel, f"{found} {heavy} {'ZKTRACE_SECRET' in os.environ} {inherited}")
        """,
    )
    assert "[] [] False []" in refusal(write(tmp_path / "m", simple_checkpoint()))


# -- a child that turned against us


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("sys.exit(0)", MalformedModel),
        ("sys.exit(1)", MalformedModel),
        ("sys.exit(40)", MalformedModel),
        ("sys.exit(41)", LimitExceeded),
        ("import os; os.write(1, b'garbage' * 100)", LimitExceeded),
        ("import os; os.write(1, (1 << 60).to_bytes(8, 'little') + b'{}')", LimitExceeded),
        ("import os; os.write(2, b'\\x1b[31m\\n\\xff' * 999); sys.exit(40)", MalformedModel),
        ("raise ValueError('\\x1b[31m' * 999)", MalformedModel),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LimitExceeded),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", MalformedModel),
        ("import time; time.sleep(1000)", LimitExceeded),
        ("import os, signal; os.kill(os.getpid(), signal.SIGALRM)", LimitExceeded),
        ("import os; os.write(2, bytes(1 << 20))", LimitExceeded),  # more than a pipe holds: waits for ever
    ],
)
def test_whatever_the_child_does_is_one_of_our_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: type[Error]
) -> None:
    rigged(monkeypatch, code)
    refusal(write(tmp_path / "m", simple_checkpoint()), kind, Limits(child_wall_seconds=2))


def test_a_child_ends_also_when_its_parent_is_gone(tmp_path: Path) -> None:
    """The parent is killed while its child is at it for an hour: the child has a clock of its own."""
    path = write(tmp_path / "m", simple_checkpoint())
    code = f"""
import sys
sys.path[:] = {sys.path!r}
from zktrace.models import Limits, open_model
from zktrace.primitives import child
work = "importlib.import_module(entry).main(argument)"
child._BOOT = child._BOOT.replace(work, "import time; time.sleep(3600)")
open_model({str(path)!r}, Limits(child_wall_seconds=1))
"""
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as parent:
        group = children_of(parent.pid)
        while not group:
            assert parent.poll() is None
            group = children_of(parent.pid)
        parent.kill()
    for each in group:
        wait_for_the_end_of(each)


def children_of(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []


def wait_for_the_end_of(process: int) -> None:
    """Not for ever: whoever waits for an end that does not come fails."""
    for _ in range(1200):
        state = Path(f"/proc/{process}/stat")
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.05)
    raise AssertionError(f"{process} goes on")


def test_what_a_fault_in_a_child_says_names_no_place_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rigged(monkeypatch, "raise ValueError('deep inside')")
    said = refusal(write(tmp_path / "m", simple_checkpoint()))
    assert said == f"{tmp_path / 'm'}: the child process that reads it failed (1)"
    monkeypatch.undo()
    rigged(
        monkeypatch,
        """
        from zktrace.primitives import child
        child.answering(child.Caps(address_bytes=1 << 30, cpu_seconds=9, answer_bytes=9), lambda: [][1])
        """,
    )
    said = refusal(write(tmp_path / "m", simple_checkpoint()))
    assert said == f"{tmp_path / 'm'}: a fault of ours: IndexError: list index out of range"


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    state = open_model(write(tmp_path / "m", simple_checkpoint()))
    assert list(scratch.iterdir()) == []
    assert state["w"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_checkpoint_opens_where_the_package_is_only_on_the_path(tmp_path: Path) -> None:
    """Neither an editable install nor site-packages: the child finds the package by its parent's folder."""
    path = write(tmp_path / "m", simple_checkpoint())
    root = Path(child.__file__).parents[2]
    libraries = Path(np.__file__).parents[1]
    code = f"import sys; sys.path[:0] = [{str(root)!r}, {str(libraries)!r}]\n"
    code += f"from zktrace.models import open_model; print(list(open_model({str(path)!r})))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == "['w']\n", done.stderr
