"""The example app, run in process: an ordinary Flower app with two more lines."""

import difflib
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed")
pytest.importorskip("torch", reason="torch is not installed")

from flwr.app import Context, Message, RecordDict

import zktrace
from zktrace.federation.flower.inprocess import InProcessGrid

APP = Path(__file__).parents[2] / "examples" / "flower-app"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(APP))
    for name in [each for each in sys.modules if each.startswith("guarded_app")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("modules")
def test_a_leaked_broadcast_of_the_first_round_names_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from guarded_app import client_app, server_app

    monkeypatch.chdir(tmp_path)
    zktrace.Workspace.create(tmp_path / "operator", title="an app", budget="1/10")
    sent: list[tuple[int, str, dict[str, np.ndarray]]] = []

    def station(message: Message, context: Context) -> Message:
        arrays = {name: each.numpy() for name, each in message.content["arrays"].items()}  # type: ignore[union-attr]
        sent.append((context.node_id, message.metadata.message_type, arrays))
        return client_app.app(message, context)

    grid = InProcessGrid(station, [{}] * 3)
    context = Context(
        run_id=1,
        node_id=0,
        node_config={},
        state=RecordDict(),
        run_config={"workspace": "operator", "rounds": 2, "rate": 0.05},
    )
    server_app.app(grid, context)
    home = zktrace.Workspace.open(tmp_path / "operator")
    assert len(home.registry.ledger().by_row) == 3
    named = {node: home.trace(arrays, budget="1/1000000").named for node, _, arrays in sent[:3]}
    assert all(len(each) == 1 for each in named.values())
    assert len(set(named.values())) == 3
    import torch

    final = {name: each.numpy() for name, each in torch.load("model.pt", weights_only=True).items()}
    assert home.trace(final, budget="1/1000000").named == ()


def test_two_lines_are_all_that_is_added() -> None:
    text = (APP / "guarded_app" / "server_app.py").read_text().splitlines()
    plain = [line for line in text if not line.endswith(("# one", "# two"))]
    added = [line for line in difflib.ndiff(plain, text) if line.startswith("+ ")]
    assert len(added) == 2
    assert "zktrace" not in "".join(plain)
