"""A job of FLARE for the tests: differences, evaluation at every site, and a client that lies.

    python flare_job.py OPERATOR OUT [--no-begin] TASK...      # the tasks that the guard is told of

Two clients train; their models go to each other to be evaluated, and so does the server's. The third is
no station, and says it is the first. Every client keeps whatever it is sent.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.utils.fl_context_utils import gen_new_peer_ctx
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import (
    InTimeAccumulateWeightedAggregator,
)
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.np.np_model_locator import NPModelLocator
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
from nvflare.app_common.workflows.cross_site_model_eval import CrossSiteModelEval
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.job_config.api import FedJob
from nvflare.private.fed.client import communicator

KEY, LIAR, VICTIM = "numpy_key", "charlie", "alpha"


def of_the_victim(fl_ctx: FLContext) -> FLContext:
    """What a client says of itself when it asks for a task, under another's name."""
    told = gen_new_peer_ctx(fl_ctx)
    told.props[ReservedKey.IDENTITY_NAME]["value"] = VICTIM
    assert told.get_identity_name() == VICTIM
    return told


class Station(Executor):
    """A client that trains, submits and evaluates, and keeps what it gets."""

    def __init__(self, seen: str) -> None:
        super().__init__()
        self.seen, self._count = seen, 0
        self._model: dict[str, np.ndarray] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.START_RUN and fl_ctx.get_identity_name() == LIAR:
            communicator.gen_new_peer_ctx = of_the_victim

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Any
    ) -> Shareable:
        site = fl_ctx.get_engine().client.client_name
        owner = shareable.get_header(AppConstants.MODEL_OWNER, "server")
        self._count += 1
        name = f"{site}-{task_name}-{owner}-{self._count}"
        (Path(self.seen) / f"{name}.txt").write_text(repr(sorted(shareable)))
        if task_name == AppConstants.TASK_SUBMIT_MODEL:
            return DXO(data_kind=DataKind.WEIGHTS, data={KEY: self._model[KEY]}).to_shareable()
        weights = from_shareable(shareable).data[KEY]
        np.savez(Path(self.seen) / f"{name}.npz", **{KEY: weights})
        if task_name == AppConstants.TASK_VALIDATION:
            return DXO(data_kind=DataKind.METRICS, data={"loss": float(weights.mean())}).to_shareable()
        rng = np.random.default_rng(sum(name.encode()))
        step = (0.3 * weights.std() * rng.normal(size=weights.shape) - 0.02 * weights).astype(np.float32)
        self._model[KEY] = weights + step
        return DXO(data_kind=DataKind.WEIGHT_DIFF, data={KEY: step}).to_shareable()


def main(operator: str, out: str, *tasks: str) -> None:
    """Run it in the simulator."""
    from zktrace.flare import TaskGuard

    seen = Path(out) / "seen"
    seen.mkdir(parents=True)
    first = np.random.default_rng(0).normal(0, 0.05, (512, 512)).astype(np.float32)
    np.save(Path(out) / "first.npy", first)
    job = FedJob(name="differences")
    job.to_server(NPModelPersistor(source_ckpt_file_full_name=f"{out}/first.npy"), id="persistor")
    job.to_server(FullModelShareableGenerator(), id="shareable_generator")
    job.to_server(InTimeAccumulateWeightedAggregator(), id="aggregator")
    job.to_server(NPModelLocator(), id="locator")
    job.to_server(
        ScatterAndGather(
            min_clients=2, num_rounds=2, wait_time_after_min_received=0, persistor_id="persistor"
        )
    )
    job.to_server(
        CrossSiteModelEval(model_locator_id="locator", submit_model_timeout=60, validation_timeout=60)
    )
    begin, told = "--no-begin" not in tasks, [task for task in tasks if not task.startswith("--")]
    stations = {"alpha": "hospital-1", "bravo": "hospital-2"}
    job.to_server(TaskGuard(workspace=operator, stations=stations, begin=begin), tasks=told)
    for client in ("alpha", "bravo", "charlie"):
        job.to(Station(str(seen)), client)
    job.simulator_run(f"{out}/flare")


if __name__ == "__main__":
    main(*sys.argv[1:])
