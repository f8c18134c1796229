"""A guard for NVIDIA FLARE: the model in a task is its client's own, and what the server keeps is nobody's.

    job.to_server(TaskGuard(workspace="/srv/operator", begin=True), tasks=["train"])

A filter of the server's task data exchanges the shared model for the client's copy (docs/flare.md). What the
workflow makes of the answers, whole models or differences, is freed of all marks when it becomes the next
shared model. A task is freed once more at the door, so what a workflow keeps to itself does not matter.

FLARE applies filters to the tasks they are listed for, and to no other. So whatever is about to leave is
looked at after all filters: a model that was not exchanged is taken out, and the run ends.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np
from nvflare.apis.dxo import DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import ContentBlockedException, Filter
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReservedHeaderKey, Shareable
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.job_config.api import FedJob, JobCtx
from nvflare.job_config.defs import FilterType, JobTargetType

from zktrace.credentials import SecretKey
from zktrace.errors import InputError, Refused
from zktrace.guarding import Broadcast, Guard, guard_of
from zktrace.guarding.guard import NAME, Made
from zktrace.guarding.subspace import NdArrays
from zktrace.primitives.text import shown
from zktrace.registry.forms import NAME_LIMIT
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home

_EXCHANGED: Final = "zktrace.exchanged"  # in the context of a request: its task carries the client's own copy
_PLAIN: Final = (str, bytes, int, float, np.generic, type(None))


class TaskGuard(Filter):
    """A task data filter of a server whose clients get copies of their own."""

    def __init__(
        self,
        *,
        workspace: str,
        stations: dict[str, str] | None = None,
        enrol: bool = False,
        begin: bool = False,
        release: str = NAME,
        strength: float | None = None,
        transport: str | None = None,
        keep: bool = False,
    ) -> None:
        """`workspace` is a path on the server. A client is the station of its name; or, given `stations`, the
        one that they have for it, and else nobody. With `enrol` a station that is missing is enrolled.

        With `begin` the first task puts the release on record that a guard needs, made of the model in it;
        else it was made by `zktrace guard init`. The rest is `Workspace.guard`'s.
        """
        super().__init__()
        # FLARE writes these into the job, by the parameters' names: nothing is opened before a task is sent
        self.workspace, self.stations, self.enrol, self.begin = workspace, stations, enrol, begin
        self.release, self.strength, self.transport, self.keep = release, strength, transport, keep
        self._lock = RLock()  # clients ask in threads of their own
        self._home: Home | None = None
        self._guard: Guard | None = None
        self._broadcast: tuple[str, Broadcast] | None = None

    def get_job_target_type(self) -> str:
        """The server: copies are made where the model is."""
        side: str = JobTargetType.SERVER
        return side

    def add_to_fed_job(self, job: FedJob, ctx: JobCtx, tasks: Sequence[str] = ()) -> None:
        """What `job.to_server(guard, tasks=[...])` calls; a job does not take this package's code along."""
        if not tasks or "*" in tasks:
            raise InputError("name the tasks that carry the model: FLARE has no filter for all of them")
        job.set_app_packages([*job.job.app_packages, "zktrace"])
        job.add_filter(self, FilterType.TASK_DATA, list(tasks), ctx)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """A task with its client's own copy; an empty one for a client that is nobody's.

        Whatever is raised here keeps FLARE from sending the task to anybody.
        """
        if not _carries(_content(shareable)):
            return shareable
        client = _client(fl_ctx)
        try:
            with self._lock:
                station = self._station(client)
                made = None if station is None else self._own(shareable, station, fl_ctx)
        except Exception as error:
            self.system_panic(f"nothing is sent to {client}: {error}", fl_ctx)
            raise
        if made is None:
            self.log_warning(fl_ctx, f"{client} is no station of the workspace: it is sent an empty task")
            _taken_out(shareable)
            return shareable
        fl_ctx.set_prop(_EXCHANGED, True, private=True, sticky=False)
        return made

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Watch what leaves, free what is kept, and put a round on record when its answers are in."""
        try:
            if event_type == EventType.AFTER_TASK_DATA_FILTER:
                self._watch(fl_ctx)
            elif event_type == AppEventType.AFTER_SHAREABLE_TO_LEARNABLE:
                with self._lock:
                    self._free(fl_ctx)
            elif event_type in (AppEventType.BEFORE_AGGREGATION, EventType.END_RUN):
                with self._lock:
                    self._close()
        except Exception as error:  # FLARE would go on
            self.system_panic(f"the guard cannot go on: {error}", fl_ctx)

    def _own(self, shareable: Shareable, station: str, fl_ctx: FLContext) -> Shareable:
        """A task with a station's copy of the model in it."""
        dxo = from_shareable(shareable)
        if dxo.data_kind != DataKind.WEIGHTS:
            raise InputError(f"a task carries {shown(str(dxo.data_kind))}: only whole models can be marked")
        broadcast = self._sent(shareable, _arrays(dxo.data), fl_ctx)
        dxo.data = broadcast.outgoing(station)
        made: Shareable = dxo.update_shareable(shareable)
        return made

    def _sent(self, shareable: Shareable, arrays: NdArrays, fl_ctx: FLContext) -> Broadcast:
        """The broadcast that a task is: all clients that are given it share its model."""
        key = str(shareable.get_header(ReservedHeaderKey.MSG_ROOT_ID))
        if self._broadcast is None or self._broadcast[0] != key:
            self._close()
            if self._guard is None:
                self._guard = self._begun(arrays)
            task = fl_ctx.get_prop(FLContextKey.TASK_NAME)
            number = shareable.get_header(AppConstants.CURRENT_ROUND)
            label = str(task) if number is None else f"{task} {number}"
            shared = self._guard.incoming(arrays)
            self._broadcast = key, self._guard.broadcast(shared, label[:NAME_LIMIT])
        return self._broadcast[1]

    def _close(self) -> None:
        if self._broadcast is not None:
            self._broadcast[1].close()
            self._broadcast = None

    def _watch(self, fl_ctx: FLContext) -> None:
        """Take out what a task carries, unless it was exchanged; put back what is no model."""
        if fl_ctx.get_prop(_EXCHANGED):
            return
        task = fl_ctx.get_prop(FLContextKey.TASK_DATA)
        content = _taken_out(task)
        if not _carries(content):
            task.update(content)
            return
        name = shown(str(fl_ctx.get_prop(FLContextKey.TASK_NAME)))
        raise Refused(
            f"the task {name} carries a model, and is not among the tasks of the guard: it is not sent"
        )

    def _free(self, fl_ctx: FLContext) -> None:
        """Free what has become the shared model; it is the workflow's own, so it is changed in its place."""
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if self._guard is not None and model and self._guard.strength:
            weights = model[ModelLearnableKey.WEIGHTS]
            weights.update(self._guard.incoming(_arrays(weights)))

    def _begun(self, arrays: NdArrays) -> Guard:
        home = self._opened()
        if not self.begin and self.release not in home.registry.ledger().releases:
            raise Refused(
                f"there is no release {self.release} in the workspace: make it (zktrace guard init), or "
                "let the first task do it (begin=True)"
            )
        return guard_of(
            home,
            arrays,
            name=self.release,
            strength=self.strength,
            transport=self.transport,
            keep=self.keep,
        )

    def _opened(self) -> Home:
        if self._home is None:
            self._home = Home.open(Path(self.workspace))
        return self._home

    def _station(self, client: str) -> str | None:
        """Who a client is; None if it is nobody, or revoked."""
        station = client if self.stations is None else self.stations.get(client)
        if station is None:
            return None
        home = self._opened()
        known = home.registry.ledger().stations
        if station in known:
            return station if known[station].revoked is None else None
        if not self.enrol:
            return None
        home.enrol(station, Request.make(SecretKey.generate(), home.offer))
        return station


def _client(fl_ctx: FLContext) -> str:
    """The client that a task is made for, by the token it asked with.

    A context of the client's has a name, too. That is what the client says of itself, and it could say
    another's, to be given the other's copy.
    """
    flow = fl_ctx.get_prop(FLContextKey.RUNNER).current_wf
    task_id = fl_ctx.get_prop(FLContextKey.TASK_ID)
    task = flow.controller.communicator.process_task_check(task_id, fl_ctx) if flow else None
    if task is None:
        raise ContentBlockedException("the task has ended: its model is not sent any more")
    name: str = task.client.name
    return name


def _content(shareable: Shareable) -> dict[str, Any]:
    """What a task carries beside its headers."""
    return {key: each for key, each in shareable.items() if key != ReservedHeaderKey.HEADERS}


def _taken_out(shareable: Shareable) -> dict[str, Any]:
    """The same, and the task is left without it."""
    content = _content(shareable)
    for key in content:
        del shareable[key]
    return content


def _carries(content: object) -> bool:
    """Whether there may be a model in it: a matrix, or anything that is not known to be none."""
    if isinstance(content, Mapping):
        return any(_carries(each) for each in content.values())
    if isinstance(content, list | tuple | set):
        return any(_carries(each) for each in content)
    if isinstance(content, np.ndarray):
        return content.ndim > 1
    return not isinstance(content, _PLAIN)


def _arrays(weights: object) -> Made:
    """A model's arrays, or InputError."""
    if not isinstance(weights, Mapping):
        raise InputError("the model of a task is no table of arrays: it cannot be marked")
    for name, each in weights.items():
        if not isinstance(each, np.ndarray | np.generic | int | float):
            raise InputError(
                f"the tensor {shown(str(name))} is a {type(each).__name__}: a guard takes numpy arrays "
                "(the exchange format numpy)"
            )
    return {str(name): np.asarray(each) for name, each in weights.items()}
