"""The two halves of a federation on Flower. They carry messages; what is in them is `federation`'s.

A node's configuration (`flower-supernode --node-config`):

    station   its place in the roster, from 0
    run-file  path of its copy of the run file
    cifar10   folder of CIFAR-10, if the preset trains on it
    cache     folder for simulated samples (default: the user's cache)

A run's configuration, read by the server alone; paths are the SuperLink machine's. Flower shows it to every
node, so all but one of them stand in a file of the operator's:

    server-file                          JSON with these:
    run-file, cifar10, cache             as above
    workspace                            the operator's, whose guard stands over the run; empty: no guard
    out                                  folder of the run
    resume                               go on with a run that was interrupted
    outcome                              file that says how it ended
    connect-timeout, query-timeout, train-timeout   seconds
"""

import json
from pathlib import Path
from typing import Final

from flwr.app import Context, Message, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from zktrace.errors import Error, InputError, MalformedFile
from zktrace.federation.client import client
from zktrace.federation.flower.engine import Patience, flower_engine
from zktrace.federation.flower.records import (
    Introduction,
    TrainRequest,
    answer_record,
    introduction_record,
    read_request,
)
from zktrace.federation.flower.runfile import RunFile, read_run_file
from zktrace.federation.guarded import guarded_handout
from zktrace.federation.handout import SAME_FOR_ALL, Handout
from zktrace.federation.run import run
from zktrace.federation.server import failed
from zktrace.federation.spec import RunSpec
from zktrace.learning.data.cache import default_folder
from zktrace.learning.threads import single_threaded
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.registry.workspace import Home

_LARGEST: Final = 1 << 16  # bytes of a server-file
_PLAIN: Final = (str, int, float, bool)

client_app = ClientApp()
server_app = ServerApp()


@client_app.query()
def introduce(message: Message, context: Context) -> Message:
    """Say which station this node is, and whether it is ready."""
    station = _station(context.node_config)
    try:
        said = Introduction(station=station, spec=_run_file(context.node_config).spec.digest(), fault="")
    except Error as error:
        said = Introduction(station=station, spec="", fault=str(error))
    return Message(introduction_record(said), reply_to=message)


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train the state that came with the message on this station's samples."""
    station = _station(context.node_config)
    request = read_request(message.content)
    try:
        spec = _run_file(context.node_config).spec
        _check(request, spec, station)
        with single_threaded():
            answer = client(spec, station).fit(request.state, request.number)
    except Exception as error:
        answer = failed(station, request.number, error)
    return Message(answer_record(answer), reply_to=message)


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    """Train the federation of the run file over the nodes of this grid."""
    config = _told(context.run_config)
    outcome = _path(config, "outcome")
    try:
        found = _run_file(config)
        out = _path(config, "out")
        if out is None:
            raise InputError("the run's configuration names no folder (out)")
        engine = flower_engine(
            found.spec,
            grid,
            nodes=found.nodes,
            handout=_handout(config, found.spec),
            patience=_patience(config),
        )
        result = run(found.spec, out, engine, resume=bool(config.get("resume", False)))
    except Error as error:
        _tell(outcome, {"error": str(error)})
        raise
    _tell(outcome, {"result": result})


def _told(config: UserConfig) -> UserConfig:
    """What the operator's file says."""
    path = _path(config, "server-file")
    if path is None:
        raise InputError("the run's configuration names no server-file")
    try:
        told = json.loads(read_bounded(path, limit=_LARGEST))
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"{path}: not what a server is told (no JSON)") from error
    if not isinstance(told, dict) or not all(isinstance(each, _PLAIN) for each in told.values()):
        raise MalformedFile(f"{path}: not what a server is told: texts, numbers and switches by name")
    return told


def _handout(config: UserConfig, spec: RunSpec) -> Handout:
    workspace = _path(config, "workspace")
    return SAME_FOR_ALL if workspace is None else guarded_handout(Home.open(workspace), spec.names)


def _tell(outcome: Path | None, content: dict[str, object]) -> None:
    if outcome is not None:
        write_atomic(outcome, json.dumps(content).encode(), replace=True)


def _check(request: TrainRequest, spec: RunSpec, station: int) -> None:
    if request.station != station:
        raise InputError(f"asked as station {request.station}, but this node is station {station}")
    if request.spec != spec.digest():
        raise InputError("the run file of this node is of another preset, seed or roster")
    if not 0 <= station < spec.preset.federation.clients:
        raise InputError(f"station {station} of {spec.preset.federation.clients}")
    if not 0 <= request.number < spec.preset.federation.rounds:
        raise InputError(f"round {request.number + 1} of {spec.preset.federation.rounds}")


def _station(config: UserConfig) -> int:
    station = config.get("station")
    if type(station) is not int:
        raise InputError("the node's configuration has no station (--node-config 'station=0 ...')")
    return station


def _run_file(config: UserConfig) -> RunFile:
    path = _path(config, "run-file")
    if path is None:
        raise InputError("the configuration names no run-file")
    return read_run_file(
        path, cifar10=_path(config, "cifar10"), cache=_path(config, "cache") or default_folder()
    )


def _path(config: UserConfig, key: str) -> Path | None:
    value = config.get(key)
    return Path(str(value)) if value else None


def _patience(config: UserConfig) -> Patience:
    default = Patience()
    return Patience(
        connect=_seconds(config, "connect-timeout", default.connect),
        query=_seconds(config, "query-timeout", default.query),
        train=_seconds(config, "train-timeout", default.train),
    )


def _seconds(config: UserConfig, key: str, default: float) -> float:
    value = config.get(key)
    if value is None or (isinstance(value, int | float) and value == 0):
        return default
    if not isinstance(value, int | float):
        raise InputError(f"{key} must be a number of seconds")
    return float(value)
