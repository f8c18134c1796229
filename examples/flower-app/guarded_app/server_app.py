"""The server's half: an ordinary strategy, and two lines that make every model it sends traceable."""

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from guarded_app.task import Net
from zktrace.flower import Guarded  # one

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds and keep the last model."""
    config = context.run_config
    strategy = FedAvg(min_available_nodes=2)
    strategy = Guarded(strategy, workspace=str(config["workspace"]), enrol=True, begin=True)  # two
    result = strategy.start(
        grid,
        ArrayRecord(Net().state_dict()),
        num_rounds=int(config["rounds"]),
        train_config=ConfigRecord({"rate": float(config["rate"])}),
    )
    if result.arrays is not None:
        torch.save(result.arrays.to_torch_state_dict(), "model.pt")
