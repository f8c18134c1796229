"""The example app on a real SuperLink with real SuperNodes, TLS and node keys; then a copy leaks.

Minutes; run by name with -m slow. Everything is started and ended here.
"""

import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flwr", reason="Flower is not installed (extra: federation)")

import torch

import zktrace
from federation.deployed import all_online, ended, gone
from zktrace.federation.flower.loopback import deployment
from zktrace.federation.flower.runfile import node_key
from zktrace.guarding import copy_proof
from zktrace.models import model_digest, open_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc"),
]

APP = Path(__file__).parents[2] / "examples" / "flower-app"
NAMED = ("kiel", "aachen")
ROUNDS = 2

# The stations' half with a station that keeps what it is sent, if its node's configuration says where.
LEAKING = """
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from guarded_app.client_app import evaluate as honest_evaluate, fit as honest_fit
from safetensors.numpy import save_file

app = ClientApp()


def leak(message: Message, context: Context) -> None:
    if "leak" in context.node_config:
        arrays = {name: each.numpy() for name, each in message.content["arrays"].items()}
        kind, round_ = message.metadata.message_type, message.content["config"]["server-round"]
        save_file(arrays, f"{context.node_config['leak']}/{kind}-{round_}.safetensors")


@app.train()
def fit(message: Message, context: Context) -> Message:
    leak(message, context)
    return honest_fit(message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    leak(message, context)
    return honest_evaluate(message, context)
"""


def prepared(folder: Path, keys: tuple[str, ...]) -> Path:
    """The app as it is, with keys of nodes as its README says, and a station that leaks."""
    app = folder / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "guarded_app" / "leaking.py").write_text(LEAKING)
    for path, old, new in (
        ("pyproject.toml", "guarded_app.client_app:app", "guarded_app.leaking:app"),
        (
            "guarded_app/server_app.py",
            "enrol=True,",
            f"enrol=True, nodes={dict(zip(NAMED, keys[:2], strict=True))!r},",
        ),
    ):
        text = (app / path).read_text()
        assert text.count(old) == 1
        (app / path).write_text(text.replace(old, new))
    return app


def test_a_copy_that_a_node_received_names_it_and_is_on_record(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "operator", title="an app", budget="1/10")
    for name in NAMED:
        home.enrol(name, zktrace.Credential.new("x").request(home.setup))
    leaks = {station: tmp_path / f"leaked by {station}" for station in (1, 2)}
    for folder in leaks.values():
        folder.mkdir()
    configs = [{"leak": str(leaks[node])} if node in leaks else {} for node in range(3)]
    with deployment(tmp_path / "flower", configs) as up:
        all_online(up)
        app = prepared(tmp_path, up.keys)
        run = up.client.start(app, {"workspace": str(home.root), "rounds": ROUNDS})
        assert ended(up, run) == "finished:completed", (tmp_path / "flower" / "superlink.log").read_text()
    gone(up)
    stranger = f"node-{sha256(node_key(up.keys[2])).hexdigest()[:20]}"
    assert list(home.registry.ledger().by_row) == [*NAMED, stranger]
    release = home.opened("federation")
    records = [each for _, each in release.ledger.broadcasts("federation")]
    labels = [f"{kind} {number + 1}" for number in range(ROUNDS) for kind in ("train", "evaluate")]
    assert [(each.label, each.copies) for each in records] == [(label, 3) for label in labels]
    for folder, owner in zip(leaks.values(), ("aachen", stranger), strict=True):
        for record in records:
            leaked = open_model(folder / f"{record.label.replace(' ', '-')}.safetensors")
            proof = copy_proof(release, record.number, owner)
            assert proof.holds(record)
            assert proof.handed.copy == model_digest(leaked)
        judged(home, folder / "evaluate-2.safetensors", owner)
    kept = torch.load(tmp_path / "flower" / "model.pt", weights_only=True)
    final = {name: each.numpy() for name, each in kept.items()}
    assert np.abs(release.reader("spread").read(final)).max() == 0.0  # what the server keeps is nobody's
    assert not np.array_equal(final["conv1.bias"], release.shared["conv1.bias"])  # and it was trained


def judged(home: zktrace.Workspace, leaked: Path, owner: str) -> None:
    """The trace names the owner, and a judge upholds it from evidence, head and models alone."""
    case = home.trace(leaked, budget="1/1000000", release="federation")
    assert case.named == (owner,)
    judgement = zktrace.judge(
        case.evidence,
        head=home.head,
        suspect=leaked,
        shared=home.opened("federation").folder.shared_path,
        policy=zktrace.Policy(require_suspect=True, require_readout=True),
    )
    assert judgement.named == (owner,)
