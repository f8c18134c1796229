"""The guard: copies of every round name their station, shared models name nobody, nothing comes back."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.codes import unpack
from zktrace.errors import InputError, MalformedFile, Refused
from zktrace.guarding import Guard, copy_proof, fitting, guard_of, handed_out
from zktrace.guarding.subspace import LEFT
from zktrace.models import ModelState, model_digest
from zktrace.readouts import blocks
from zktrace.readouts.blocks import Blocks
from zktrace.readouts.flow import Flow
from zktrace.registry.records import RevocationRecord

NAMES = tuple(f"station-{i}" for i in range(6))
Arrays = dict[str, np.ndarray]


def first(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        "conv.weight": rng.normal(0, 0.1, (32, 16, 3, 3)).astype(np.float32),
        "fc.weight": rng.normal(0, 0.03, (96, 130)).astype(np.float32),
        "fc.bias": rng.normal(0, 0.1, 96).astype(np.float32),
        "steps": np.array([3, 4]),
    }


def trained(arrays: Arrays, rng: np.random.Generator, rate: float = 0.5, decay: float = 0.99) -> Arrays:
    """As training moves weights: far, and shrinking what is there, marks too."""
    return {
        name: (decay * each + rate * each.std() * rng.normal(size=each.shape)).astype(each.dtype)
        if each.dtype.kind == "f"
        else each
        for name, each in arrays.items()
    }


def mean_of(models: list[Arrays]) -> Arrays:
    return {
        name: np.mean([each[name] for each in models], axis=0).astype(models[0][name].dtype)
        for name in models[0]
    }


@pytest.fixture
def home(tmp_path: Path) -> zktrace.Workspace:
    made = zktrace.Workspace.create(tmp_path / "op", title="a federation", budget="1/2")
    for name in NAMES:
        made.enrol(name, zktrace.Credential.new(name).request(made.setup))
    return made


def read(guard: Guard, arrays: Arrays) -> np.ndarray:
    return guard.release.reader("spread").read(arrays)


def test_every_round_is_traced_by_one_reference(home: zktrace.Workspace) -> None:
    guard, rng, shared = home.guard(first()), np.random.default_rng(1), first()
    for number in range(4):
        copies = {name: guard.outgoing(name, shared) for name in NAMES}
        local = {name: trained(each, rng) for name, each in copies.items()}
        for suspect in (copies["station-2"], local["station-2"]):
            case = home.trace(suspect, budget="1/1000000")
            assert case.named == ("station-2",), number
            head = home.head
        shared = guard.incoming(mean_of(list(local.values())))
        assert np.abs(read(guard, shared)).max() == 0.0  # silence
        assert home.trace(shared, budget="1/100").named == ()
    judged = zktrace.judge(case.evidence, head=head, suspect=local["station-2"], shared=guard.release.shared)
    assert judged.named == ("station-2",)


def test_what_is_taken_out_is_the_component_in_the_subspace(home: zktrace.Workspace) -> None:
    """Against the definition: an orthonormal basis of all moves, and nothing else changes."""
    guard, rng = home.guard(first()), np.random.default_rng(2)
    shared, given = first(), trained(first(), rng)
    found = guard.incoming(given)
    for name, part in guard._mark.parts.items():
        length = guard._mark.blocks.length
        basis = np.stack(
            [
                np.concatenate(list(guard._mark.blocks.moves(part, np.eye(length)[b]))) / np.sqrt(part.blocks)
                for b in range(length)
            ]
        ).astype(np.float64)
        size = part.blocks * length
        given_flat, first_flat = (each[name].reshape(-1).astype(np.float64) for each in (given, shared))
        wanted = given_flat.copy()
        wanted[:size] -= basis.T @ (basis @ (given_flat - first_flat)[:size])
        assert np.abs(found[name].reshape(-1) - wanted).max() < 1e-5 * part.deviation
        assert np.array_equal(found[name].reshape(-1)[size:], given[name].reshape(-1)[size:])
    for name in ("fc.bias", "steps"):
        assert np.array_equal(found[name], given[name])


@pytest.mark.parametrize("factor", [-1.0, 1e3, 1e6])
def test_nobody_puts_a_mark_into_the_shared_model(home: zktrace.Workspace, factor: float) -> None:
    """A station sends its mark back amplified or negated, or what it thinks is another's."""
    guard, shared = home.guard(first()), first()
    copies = [guard.outgoing(name, shared) for name in NAMES]
    mark = {name: copies[1][name] - shared[name] for name in shared if shared[name].dtype.kind == "f"}
    copies[1] = {
        name: each + np.float32(factor) * mark[name] if name in mark else each
        for name, each in copies[1].items()
    }
    found = guard.incoming(mean_of(copies))
    for part in guard._mark.parts.values():
        left = guard.release.reader("spread")._readings(part, found, np.inf)
        assert np.sqrt(np.mean(left**2)) < 2 * LEFT
    assert home.trace(found, budget="1/100").named == ()


def test_no_strength_is_the_identity_bit_for_bit(home: zktrace.Workspace) -> None:
    guard = home.guard(first(), strength=0.0)
    given = trained(first(), np.random.default_rng(3))
    for found in (guard.outgoing("station-1", given), guard.incoming(given)):
        assert list(found) == list(given)
        assert all(np.array_equal(found[name], given[name]) for name in given)
        assert all(found[name].dtype == given[name].dtype for name in given)


@pytest.mark.parametrize("transport", ["float16", "bfloat16"])
def test_types_of_16_bits_are_dithered_and_the_server_keeps_float32(
    home: zktrace.Workspace, transport: str
) -> None:
    guard, shared = home.guard(first(), transport=transport), first()
    copy = guard.copy("station-3", shared, number=5)
    assert {copy.tensor(name).dtype for name in ("conv.weight", "fc.weight")} == {transport}
    arrays = dict(copy.items())
    assert home.trace(arrays, budget="1/1000000").named == ("station-3",)
    back = guard.incoming(mean_of([arrays]))
    assert all(back[name].dtype == np.float32 for name in ("conv.weight", "fc.weight"))
    assert np.abs(read(guard, back)).max() == 0.0
    assert copy != guard.copy("station-3", shared, number=6)  # another dither


def test_a_model_in_float16_is_kept_in_float32(home: zktrace.Workspace) -> None:
    half = {
        name: each.astype(np.float16) if each.dtype.kind == "f" else each for name, each in first().items()
    }
    guard = home.guard(half)
    sent = guard.outgoing("station-0", guard.incoming(half))
    assert sent["fc.weight"].dtype == np.float16
    assert home.trace(sent, budget="1/1000000").named == ("station-0",)


def changed(change: Callable[[Arrays], None]) -> Arrays:
    found = first()
    change(found)
    return found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda each: each.pop("fc.bias"), "'fc.bias' is gone"),
        (lambda each: each.update(extra=np.zeros(3)), "'extra' is new"),
        (
            lambda each: each.update({"fc.weight": np.zeros((3, 3))}),
            r"has the shape \(3, 3\), it was \(96, 130\)",
        ),
    ],
)
def test_other_tensors_are_a_clear_error(
    home: zktrace.Workspace, change: Callable[[Arrays], None], reason: str
) -> None:
    guard, wrong = home.guard(first()), changed(change)
    for call in (
        lambda: guard.outgoing("station-0", wrong),
        lambda: guard.incoming(wrong),
        lambda: guard.broadcast(wrong, "1"),
        lambda: home.guard(wrong),
    ):
        with pytest.raises(InputError, match=reason):
            call()


@pytest.mark.parametrize("place", [0, -1])  # the last weight comes after the last block
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_an_aggregate_that_is_no_number_is_refused(
    home: zktrace.Workspace, place: int, number: float
) -> None:
    guard, wrong = home.guard(first()), first()
    part = guard._mark.parts["fc.weight"]
    assert part.blocks * guard._mark.blocks.length < wrong["fc.weight"].size
    wrong["fc.weight"].reshape(-1)[place] = number
    with pytest.raises(InputError, match="not finite"):
        guard.incoming(wrong)


@pytest.mark.parametrize(("dtype", "number"), [(np.float32, 3e38), (np.float64, 1e300)])
def test_an_aggregate_whose_sums_overflow_is_refused(
    home: zktrace.Workspace, dtype: type, number: float
) -> None:
    guard, wrong = home.guard(first()), first()
    wrong["conv.weight"] = np.full(wrong["conv.weight"].shape, number, dtype=dtype)
    with pytest.raises(InputError, match="too large to be added up"):
        guard.incoming(wrong)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_copy_in_memory_is_the_one_that_is_made_in_pieces(
    home: zktrace.Workspace, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = dtype if dtype.endswith("16") else None
    guard, shared = home.guard(first(), transport=transport), first()
    if dtype == "float64":
        shared = {name: each.astype(dtype) if each.ndim > 1 else each for name, each in shared.items()}
    whole = guard.copy("station-1", shared, number=2)
    row, length = guard._row("station-1"), guard._mark.blocks.length
    monkeypatch.setattr(blocks, "CHUNK", 2 * length)
    monkeypatch.setattr(blocks, "_READ", length)
    monkeypatch.setattr(blocks, "_MOVED", length)
    code = guard.release.code("spread")
    signs = guard._mark.signs(unpack(code.rows([row])[0], code.length))
    assert guard.copy("station-1", shared, number=2) == whole
    for name in guard._mark.parts:
        pieces = guard._mark.pieces(name, Flow(shared, name), dtype, signs, guard._dither(name, row, 2))
        assert np.concatenate(list(pieces)).tobytes() == bytes(whole.tensor(name).data)


def test_who_gets_no_copy(home: zktrace.Workspace) -> None:
    guard = home.guard(first())
    with pytest.raises(Refused, match="no station"):
        guard.outgoing("stranger", first())
    home.enrol("late", zktrace.Credential.new("late").request(home.setup))
    assert home.trace(guard.outgoing("late", first()), budget="1/1000000").named == ("late",)
    home.registry.add(RevocationRecord(station="late", reason="left"))
    with pytest.raises(Refused, match="revoked"):
        guard.outgoing("late", first())
    plain = home.release(first(7), name="plain")
    with pytest.raises(Refused, match="not guarded"):
        Guard(home, plain)
    with pytest.raises(Refused, match="begins with the federation's first arrays"):
        guard_of(home, name="other")
    for wrong in ({"strength": -1.0}, {"strength": 2.0}, {"transport": "int8"}):
        with pytest.raises(InputError):
            home.guard(**wrong)


def test_a_run_goes_on_with_the_same_rows(home: zktrace.Workspace) -> None:
    shared = first()
    before = home.guard(shared).outgoing("station-4", shared)
    again = zktrace.Workspace.open(home.root).guard(trained(shared, np.random.default_rng(5)))
    after = again.outgoing("station-4", shared)
    assert all(np.array_equal(before[name], after[name]) for name in shared)


def test_broadcasts_are_on_record_and_copies_are_proved(home: zktrace.Workspace) -> None:
    guard, shared = home.guard(first(), keep=True), first()
    sent = []
    for number in range(3):
        broadcast = guard.broadcast(shared, f"round {number + 1}")
        copies = {name: broadcast.outgoing(name) for name in reversed(NAMES[: 3 + number])}
        record = broadcast.close()
        assert record is not None
        assert (record.number, record.copies, record.label) == (number, 3 + number, f"round {number + 1}")
        assert record.model == model_digest(ModelState.from_arrays(shared))
        sent.append((record, copies))
        shared = guard.incoming(
            mean_of([trained(each, np.random.default_rng(number)) for each in copies.values()])
        )
    opened = home.opened("federation")
    assert [each for _, each in opened.ledger.broadcasts("federation")] == [record for record, _ in sent]
    for number, (record, copies) in enumerate(sent):
        assert [each.station for each in handed_out(opened, number).copies] == list(NAMES[: 3 + number])
        for name in copies:
            proof = copy_proof(opened, number, name)
            assert type(proof).from_bytes(proof.to_bytes()) == proof
            assert proof.holds(record)
            assert not proof.holds(sent[(number + 1) % 3][0])
            assert proof.handed.copy == model_digest(ModelState.from_arrays(copies[name]))
    for wrong in (b"", b"[]", b"{}", b'{"handed":1}', bytes(1 << 15), proof.to_bytes() + b" "):
        with pytest.raises(MalformedFile):
            type(proof).from_bytes(wrong)
    with pytest.raises(Refused, match="was sent no copy"):
        copy_proof(opened, 0, "station-5")
    with pytest.raises(Refused, match="no broadcast"):
        copy_proof(opened, 3, "station-0")
    (fit,) = fitting(opened, ModelState.from_arrays(sent[1][1]["station-0"]))
    assert (fit.number, fit.label, fit.distance) == (1, "round 2", 0.0)
    near = trained(sent[1][1]["station-0"], np.random.default_rng(9), rate=0.05, decay=1.0)
    best, *others = fitting(opened, ModelState.from_arrays(near))
    assert best.number == 1
    assert best.distance == pytest.approx(np.hypot(0.05, guard.strength), abs=0.01)
    assert all(each.distance > 5 * best.distance for each in others)
    (opened.folder.path / "broadcasts" / "000001.json").write_text("{}")
    with pytest.raises(Refused, match="not the list that is on record"):
        copy_proof(opened, 1, "station-0")


def test_nothing_was_sent_and_nothing_is_on_record(home: zktrace.Workspace) -> None:
    guard = home.guard(first())
    assert guard.broadcast(first(), "1").close() is None
    assert list(home.opened("federation").ledger.broadcasts("federation")) == []


def test_averages_over_rounds_and_stations(home: zktrace.Workspace) -> None:
    guard, rng, shared = home.guard(first()), np.random.default_rng(1), first()
    seen: dict[str, list[Arrays]] = {name: [] for name in NAMES}
    for _ in range(3):
        local = {}
        for name in NAMES:
            seen[name].append(guard.outgoing(name, shared))
            local[name] = trained(seen[name][-1], rng, rate=0.2)
        shared = guard.incoming(mean_of(list(local.values())))
    assert home.trace(mean_of(seen["station-5"]), budget="1/1000000").named == ("station-5",)
    both = mean_of([seen["station-0"][0], seen["station-3"][2]])
    assert set(home.trace(both, budget="1/1000000").named) == {"station-0", "station-3"}


@pytest.mark.slow
def test_shared_models_of_fresh_keys_name_nobody(tmp_path: Path) -> None:
    """Where it would break first: everybody's row was in what came back. Twelve sets of keys, budget 1/5."""
    silent, noisy = 0, 0
    for seed in range(12):
        made = zktrace.Workspace.create(tmp_path / f"op{seed}", title="a federation", budget="9/10")
        for name in NAMES[:3]:
            made.enrol(name, zktrace.Credential.new(name).request(made.setup))
        shared, rng = first(seed), np.random.default_rng(seed)
        guard = made.guard(shared)
        for _ in range(2):
            local = [trained(guard.outgoing(name, shared), rng, rate=0.01) for name in NAMES[:3]]
            shared = guard.incoming(mean_of(local))
        silent += bool(made.trace(shared, budget="1/5").named)
        loud = trained(shared, rng, rate=1e-3, decay=1.0)
        noisy += bool(made.trace(loud, budget="1/5").named)
        assert float(np.abs(read(guard, loud)).max()) > 0
    assert silent == 0
    assert noisy <= 7  # more have a probability of 6e-4 at a budget of 1/5


def test_subspaces_of_tensors_are_their_own(home: zktrace.Workspace) -> None:
    guard = home.guard(first())
    one, two = list(guard._mark.parts.values())[:2]
    blocks: Blocks = guard._mark.blocks
    moves = [next(iter(blocks.moves(part, np.eye(blocks.length)[0])))[: blocks.length] for part in (one, two)]
    assert abs(float(np.dot(*moves))) / blocks.length < 0.3
