"""Writes samples of every format, of the version that the package has, through its public calls.

    PYTHONPATH=src:tests python tests/released/make.py

Run by hand, once a version whose formats are others than before, and never by the suite: samples that are
there are never replaced. It needs every extra of the package and takes less than a minute.

Keys come from labels, so whoever reads this can derive them: they protect nothing. Salts of proofs, the order
of queries, node keys and the dates in the logs are fresh every time.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from numpy.typing import NDArray

import zktrace
from support import seeded
from zktrace.codes import CodeKey, unpack
from zktrace.codes.cache import RowCache
from zktrace.credentials import (
    Component,
    CredentialBinding,
    MessageBinding,
    ModelBinding,
    SecretKey,
    by_name,
    prove,
)
from zktrace.dispatch.dispatching import dispatch
from zktrace.federation.flower.runfile import write_run_file
from zktrace.federation.run import run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.guarding import copy_proof, guard_of
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.configs import EpisodicConfig, PretrainConfig
from zktrace.learning.presets import load_preset
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.learning.training import pretrain
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.readouts.readout import Reading, Readout
from zktrace.readouts.samples import Pool
from zktrace.readouts.scores import scores_digest
from zktrace.registry.custody import CodeShape, Custody
from zktrace.registry.enrolling import enrol
from zktrace.registry.export import write_export
from zktrace.registry.records import PLACE, Layout, ReleaseRecord, RevocationRecord
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request, offer_text
from zktrace.registry.stores.memory import MemoryStore
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder, make_release
from zktrace.releases.queries import picked, queries_of
from zktrace.tracing import Case, trace

HERE = Path(__file__).parent
OUT = HERE / zktrace.__version__
DEFAULT, PAPER, TEST = "xlpn-1280-640-132", "xlpn-1024-512-128", "test-128-64-16"
SIDE, CLASSES = 12, 6  # of the images that the network of `full` sees
MESSAGE = b"I received this copy.\n"


def secret_key(label: str, params: str) -> SecretKey:
    return SecretKey.generate(by_name(params), entropy=seeded(f"released {label}"))


def write(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


# ── credentials ─────────────────────────────────────────────────────────────────────────────────────────────


def credentials(out: Path) -> None:
    """Keys of the default, the paper's and the test set; proofs of the modes that have files of their own."""
    for label, params in (("default", DEFAULT), ("paper", PAPER), ("test", TEST)):
        key = secret_key(label, params)
        write(out / f"{label}.key", key.to_bytes())
        write(out / f"{label}.pub", key.public.to_bytes())
    for label, params in (("default", DEFAULT), ("paper", PAPER)):
        key = secret_key(label, params)
        write(out / f"{label}-credential.proof", prove(key, CredentialBinding()).to_bytes())
    key = secret_key("default", DEFAULT)
    write(out / "message.txt", MESSAGE)
    write(out / "message.proof", prove(key, MessageBinding.of(MESSAGE)).to_bytes())
    state = {"bn1.weight": np.linspace(0.5, 1.5, 8, dtype=np.float32)}
    save_model(out / "model.safetensors", state)
    component = Component(bits=128, packed=key.public.codeword(128))
    write(out / "component.txt", f"{component.to_text()}\n")
    digest = model_digest(open_model(out / "model.safetensors"))
    proof = prove(key, ModelBinding(state_digest=digest, component=component))
    write(out / "model.proof", proof.to_bytes())


# ── an operator of the weight carrier ───────────────────────────────────────────────────────────────────────


def light(out: Path) -> None:
    """Three stations, the last at a place that was reserved later; two releases; four verdicts."""
    shapes = tuple(CodeShape(carrier=name, colluders=2) for name in ("weight", "spread"))
    with code_key("light"):
        home = Home.create(out, title="light", budget=Fraction(1, 100), carriers=shapes, places=2)
    write(out.parent / "offer.txt", f"{offer_text(home.offer)}\n")
    enrolled(home, alpha=DEFAULT, bravo=TEST)
    home.reserve(PLACE, 2)
    enrolled(home, carol=TEST)
    with temporary() as folder:
        save_model(folder / "shared.safetensors", scales())
        make_release(
            home, folder / "shared.safetensors", carriers=("weight",), name="r1", lengths={"weight": 256}
        )
    copies = {each.station: open_model(each.path) for each in dispatch(home)}
    home.registry.add(RevocationRecord(station="bravo", reason="it left"))
    write(out.parent / "heads" / "before.txt", f"{home.registry.head().to_text()}\n")
    shared = ReleaseFolder(path=home.release_folder("r1")).shared()
    suspects = out.parent / "suspects"
    save_model(made(suspects) / "alpha.safetensors", copies["alpha"])
    opposite = {name: 2 * shared[name] - copies["carol"][name] for name in shared}
    save_model(suspects / "opposite.safetensors", opposite)
    rng = np.random.default_rng(5)
    noisy = {
        name: (array + 0.05 * rng.standard_normal(array.shape)).astype(np.float32)
        for name, array in shared.items()
    }
    save_model(suspects / "unmarked.safetensors", noisy)
    for stem in ("alpha", "opposite", "unmarked"):
        suspect = open_model(suspects / f"{stem}.safetensors")
        reading = OpenRelease.of(home, "r1").read(suspect, ("weight",))
        case = investigated(home, model_digest(suspect), reading, budget=Fraction(1, 1000))
        keep(out.parent, case, f"weight-{stem}")
    spread(out.parent, home)
    guarded(out.parent, home)
    registry(out.parent / "registry", home)
    RowCache.build(out.parent / "weight.rows", OpenRelease.of(home, "r1").code("weight"), 3)


def spread(out: Path, home: Home) -> None:
    """A network without any norm, whose copy leaks in half the bits."""
    weights = np.random.default_rng(9).normal(size=(64, 64)).astype(np.float32)
    make_release(home, ModelState.from_arrays({"fc.weight": weights}), carriers=("spread",), name="r2")
    (copy,) = dispatch(home, release=OpenRelease.of(home, "r2"), stations=["carol"])
    half = ModelState.from_arrays({"fc.weight": open_model(copy.path)["fc.weight"].astype(np.float16)})
    save_model(out / "suspects" / "half.safetensors", half)
    reading = OpenRelease.of(home, "r2").read(half)
    case = investigated(home, model_digest(half), reading, budget=Fraction(1, 1000), release="r2")
    keep(out, case, "spread-half")


def guarded(out: Path, home: Home) -> None:
    """A federation under a guard: one broadcast, the proof of a copy, and the case of a leak."""
    weights = np.random.default_rng(8).normal(size=(64, 64)).astype(np.float32)
    guard = guard_of(home, {"fc.weight": weights})
    broadcast = guard.broadcast({"fc.weight": weights}, "round 1")
    copies = {name: broadcast.outgoing(name) for name in ("alpha", "carol")}
    record = broadcast.close()
    assert record is not None
    release = OpenRelease.of(home, "federation")
    write(out / "registry" / "copy.json", copy_proof(release, record.number, "carol").to_bytes())
    suspect = ModelState.from_arrays(copies["carol"])
    save_model(out / "suspects" / "broadcast.safetensors", suspect)
    reading = release.read(suspect)
    case = investigated(home, model_digest(suspect), reading, budget=Fraction(1, 1000), release="federation")
    keep(out, case, "spread-broadcast")


def scales() -> dict[str, NDArray[np.float32]]:
    """What of a network the weight carrier reads, and one other layer."""
    rng = np.random.default_rng(0)
    state = {"conv1.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32)}
    for number in range(5):
        state[f"layer{number}.bn1.weight"] = (1 + 0.05 * rng.normal(size=60)).astype(np.float32)
        state[f"layer{number}.bn1.running_var"] = np.ones(60, np.float32)
    return state


def registry(out: Path, home: Home) -> None:
    """The log as an auditor gets it: export, a proof of inclusion, and one that the log only grew."""
    head = write_export(home.registry, made(out) / "export")
    write(out.parent / "heads" / "light.txt", f"{head.to_text()}\n")
    write(out / "inclusion.json", home.registry.prove(1).to_bytes() + b"\n")
    for old in ("before", "weight-alpha"):
        text = (out.parent / "heads" / f"{old}.txt").read_text().strip()
        proof = home.registry.prove_extends(type(head).from_text(text))
        write(out / f"since-{old}.json", proof.to_bytes() + b"\n")


# ── an operator of all carriers ─────────────────────────────────────────────────────────────────────────────


def full(out: Path) -> None:
    """A release whose copies carry all three rows, a copy, and a case for each way to read it."""
    lengths = {"weight": 96, "feature": 48, "output": 96}
    shapes = tuple(CodeShape(carrier=name, colluders=2) for name in lengths)
    with code_key("full"):
        home = Home.create(out, title="full", budget=Fraction(9, 10), carriers=shapes, places=4)
    enrolled(home, alpha=TEST, bravo=TEST, carol=TEST)
    with temporary() as folder:
        save_model(folder / "shared.safetensors", taught())
        make_release(
            home,
            folder / "shared.safetensors",
            carriers=tuple(lengths),
            name="r1",
            pool=proxy_pool(),
            lengths=lengths,
        )
    mark = {"passes": 80, "batch_size": 32, "beside": 32, "margin": 0.5, "learning_rate": 1e-3}
    settings = CopySettings(
        marks={
            "feature": mark,
            "output": mark | {"passes": 120, "margin": 0.7, "companion": 6.0, "keep": 1.0},
        }
    )
    list(dispatch(home, stations=["bravo"], settings=settings, read_back=False))
    copy, budget = open_model(home.copy_path("r1", "bravo")), Fraction(1, 10)
    for carrier in ("feature", "output"):
        reading = OpenRelease.of(home, "r1").read(copy, (carrier,), align=False)
        case = investigated(home, model_digest(copy), reading, budget=budget)
        keep(out.parent, case, f"{carrier}-copy")
    disguised = rescaled(copy)
    reading = OpenRelease.of(home, "r1").read(disguised, ("weight",))
    case = investigated(home, model_digest(disguised), reading, budget=budget)
    keep(out.parent, case, "weight-rescaled")
    queried(out.parent, home, copy, budget)
    reading = OpenRelease.of(home, "r1").read(copy, ("weight",), align=False)
    case = investigated(home, model_digest(copy), reading, budget=Fraction(0))
    keep(out.parent, case, "weight-uncertified")


def rescaled(state: ModelState) -> ModelState:
    """Channels inside blocks times positive factors: the same function, other scales."""
    rng, found = np.random.default_rng(3), {name: np.array(value) for name, value in state.items()}
    for name in [each for each in found if each.startswith("layer") and each.endswith(".bn1.weight")]:
        block = name.removesuffix("bn1.weight")
        factor = np.exp(2 * rng.standard_normal(len(found[name]))).astype(np.float32)
        found[name] *= factor
        found[f"{block}bn1.bias"] *= factor
        found[f"{block}conv2.weight"] /= factor[None, :, None, None]
    return ModelState.from_arrays(found)


def queried(out: Path, home: Home, copy: ModelState, budget: Fraction) -> None:
    """The copy behind a wall: queries among decoys, their secret order, and scores picked out of answers."""
    inputs, order = queries_of(OpenRelease.of(home, "r1"), decoys=4)
    asked = OpenRelease.of(home, "r1").terms("output").probes or {}
    support = Support(images=asked["support"], labels=asked["labels"])
    answers = class_scores(copy, inputs, support)
    write(out / "queries" / "order.json", order.to_bytes())
    save_model(out / "queries" / "answers.safetensors", {"scores": answers})
    scores = picked(answers, order)
    np.savez(out / "queries" / "scores.npz", scores=scores)
    case = investigated(
        home, scores_digest(scores), OpenRelease.of(home, "r1").read_answers(scores), budget=budget
    )
    keep(out, case, "output-scores")


def images(samples: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One fixed pattern a class, under noise."""
    patterns = np.random.default_rng(99).standard_normal((CLASSES, 1, SIDE, SIDE))
    labels = np.arange(samples) % CLASSES
    noise = np.random.default_rng(seed).standard_normal((samples, 1, SIDE, SIDE))
    return (patterns[labels] + noise).astype(np.float32), labels.astype(np.int64)


def taught() -> dict[str, NDArray[np.float32]]:
    """A very narrow network after three epochs."""
    model = resnet18(channels=1, width=3, rng=np.random.default_rng(0))
    config = PretrainConfig(epochs=3, batch_size=60)
    pretrain(model, *images(240, seed=0), config, np.random.default_rng(0))
    return state_of(model)


def proxy_pool() -> Pool:
    episodes = EpisodicConfig(way=3, shot=2, query=3, temperature=8.0, learning_rate=0.01)
    drawn, labels = images(220, seed=1)
    return Pool(images=drawn, labels=labels, episodes=asdict(episodes), note="patterns under noise")


# ── the paper's rule, on a log in memory ────────────────────────────────────────────────────────────────────


def paper(out: Path) -> None:
    """A case under the rule `paper`, whose suspect never was a file: its readout is a row under noise."""
    shape = CodeShape(carrier="weight", colluders=2)
    key = CodeKey.generate(entropy=seeded("released paper"))
    custody, log = Custody(key=key, shapes=(shape,)), Registry(MemoryStore())
    log.add(custody.setup(title="paper", budget=Fraction(1, 100), places=4, releases=1))
    requests: dict[str, Request] = {}
    for name in ("alpha", "bravo", "carol"):
        offer = log.ledger().offer(PLACE, len(requests)).digest
        requests[name] = Request.make(secret_key(name, TEST), offer, nonce=seeded(f"nonce {name}")(32))
        enrol(log, station=name, request=requests[name], allow_weak_params=True)
    layout = Layout(
        carrier="weight",
        profile="paper",
        length=256,
        law="tardos",
        dimension=300,
        layers=(150, 150),
        deviations=b"",
        reference=bytes(32),
        probes=bytes(32),
        frozen=False,
    )
    model = hashlib.sha256(b"a shared model").digest()
    log.add(ReleaseRecord(name="r1", number=0, root=log.ledger().root, model=model, layouts=(layout,)))
    code = custody.code("weight", log.ledger().claims, length=256, law="tardos")
    bits = unpack(code.rows([2]), 256)[0].astype(np.float64)
    values = 2 * bits - 1 + 0.3 * np.random.default_rng(1).standard_normal(256)
    case = trace(
        log,
        custody,
        suspect=hashlib.sha256(b"a suspect").digest(),
        release="r1",
        readouts=[Readout(carrier="weight", values=values, reference=None)],
        budget=Fraction(1, 1000),
        requests=requests.get,
    )
    keep(out, case, "paper-rule")


# ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────


def training(out: Path) -> None:
    """A run of two rounds with its two checkpoints, and its run file with nodes' keys."""
    smoke = load_preset("smoke")
    preset = replace(
        smoke,
        data=replace(smoke.data, samples=600),
        model=replace(smoke.model, width=2),
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, rounds=2, clients=3),
        marks=replace(smoke.marks, bits=16),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    names = ("alpha", "bravo", "carol")
    words = tuple(secret_key(each, TEST).public.codeword(16) for each in names)
    with temporary() as folder:
        spec = RunSpec(preset=preset, seed=1, words=words, names=names, rows=(0, 1, 2), cache=folder)
        with worker_engine(spec, workers=0) as engine:
            run(spec, out, engine)
    nodes = [ec.generate_private_key(ec.SECP384R1()).public_key() for _ in names]
    lines = [each.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() for each in nodes]
    write_run_file(out.parent / "run.json", spec, nodes=lines)


# ── shared ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def code_key(label: str) -> Iterator[None]:
    """Workspaces made inside have a code key from a label."""
    key = CodeKey.generate(entropy=seeded(f"released {label}"))
    with patch.object(CodeKey, "generate", lambda: key):
        yield


@contextmanager
def temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def enrolled(home: Home, **stations: str) -> None:
    """Stations by name, with keys of these sets."""
    for name, params in stations.items():
        request = Request.make(secret_key(name, params), home.offer, nonce=seeded(f"nonce {name}")(32))
        home.enrol(name, request, allow_weak_params=params != DEFAULT)


def investigated(
    home: Home, suspect: bytes, reading: Reading, *, budget: Fraction, release: str = "r1"
) -> Case:
    return trace(
        home.registry,
        home.custody,
        suspect=suspect,
        release=release,
        readouts=reading.readouts,
        further=reading.further,
        budget=budget,
        requests=home.request_of,
    )


def keep(out: Path, case: Case, stem: str) -> None:
    """The evidence and the head that a judge gets."""
    names = ", ".join(case.names) or "nobody"
    sys.stdout.write(f"{stem}: {case.verdict}, {names} ({case.look.alignment})\n")
    write(out / "evidence" / f"{stem}.zkt.json", case.evidence.to_bytes())
    write(out / "heads" / f"{stem}.txt", f"{case.evidence.head}\n")


def manifest(folder: Path) -> str:
    """SHA-256 and path of every file, in order, as `sha256sum` writes them."""
    found = sorted(each for each in folder.rglob("*") if each.is_file())
    lines = (
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.relative_to(folder).as_posix()}\n"
        for each in found
    )
    return "".join(lines)


def main() -> int:
    if OUT.exists():
        sys.stderr.write(f"{OUT.name}/ is there already, and what was released stays as it is\n")
        return 2
    with temporary() as folder:
        out = folder / OUT.name
        credentials(out / "credentials")
        light(out / "light")
        full(out / "full")
        paper(out)
        training(out / "run")
        for each in out.rglob(".*"):
            each.unlink()  # locks
        shutil.copytree(out, OUT, copy_function=shutil.copyfile)
    write(HERE / f"{OUT.name}.sha256", manifest(OUT))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
