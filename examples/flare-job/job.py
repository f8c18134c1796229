"""The server's half: an ordinary job, and two lines that make every model it sends traceable."""

import argparse
from pathlib import Path

import numpy as np
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

from zktrace.flare import TaskGuard  # one

HERE = Path(__file__).parent


def main() -> None:
    """Run the job in the simulator. Clients keep what they are sent, in `seen`."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--workspace", default="operator")
    ask.add_argument("--out", default="run")
    ask.add_argument("--clients", type=int, default=3)
    ask.add_argument("--rounds", type=int, default=2)
    given = ask.parse_args()
    out = Path(given.out).resolve()
    (out / "seen").mkdir(parents=True)
    first = np.random.default_rng(0).normal(0, 0.05, (512, 512)).astype(np.float32)
    np.save(out / "first.npy", first)

    job = FedJob(name="guarded")
    keeper = job.to_server(
        NPModelPersistor(source_ckpt_file_full_name=str(out / "first.npy")), id="persistor"
    )
    job.to_server(FedAvg(num_clients=given.clients, num_rounds=given.rounds, persistor_id=keeper))
    runner = ScriptRunner(
        script=str(HERE / "station.py"),
        script_args=f"--seen {out / 'seen'}",
        framework=FrameworkType.NUMPY,
    )
    job.to_clients(runner)
    workspace = str(Path(given.workspace).resolve())
    job.to_server(TaskGuard(workspace=workspace, enrol=True, begin=True), tasks=["train"])  # two
    job.simulator_run(str(out / "flare"), n_clients=given.clients)


if __name__ == "__main__":
    main()
