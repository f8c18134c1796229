"""Run a federation on a SuperLink: hand in an app without code, watch the run's folder, take the result.

The caller sits on the SuperLink's machine (its Control API is not authenticated and should not leave it): the
ServerApp reads the run file and the operator's workspace, and writes the run's folder there. Nodes need
zktrace installed and a copy of the run file; nothing is installed at run time and nothing is fetched.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from zktrace.errors import Error, FederationFailed, InputError, Refused
from zktrace.federation.flower import QUIET
from zktrace.federation.flower.engine import Patience
from zktrace.federation.flower.runfile import RunFile
from zktrace.federation.run import Progress
from zktrace.federation.server import RoundReport
from zktrace.federation.spec import RunSpec

_CONNECTION: Final = "federation"
_COMMAND_LIMIT: Final = 120.0  # seconds that a Flower command may take
_STATUS_INTERVAL: Final = 20.0  # seconds between two looks at the SuperLink
_ENDED: Final = "finished"
_RUN_FILE, _SERVER_FILE, _OUTCOME = "run.json", "server.json", "outcome.json"

_SHELL: Final = """\
[build-system]
requires = []

[project]
name = "zktrace-federation"
version = "1.0.0"
description = "Thin shell: the code is the installed package zktrace"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "zktrace"

[tool.flwr.app.components]
serverapp = "zktrace.federation.flower.app:server_app"
clientapp = "zktrace.federation.flower.app:client_app"

[tool.flwr.app.config]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperLink:
    """Where a SuperLink listens, and the certificate that vouches for it."""

    address: str  # host:port
    root_certificates: Path

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"{self.address!a}: an address is host:port")
        if not self.root_certificates.is_file():
            raise Refused(f"{self.root_certificates}: no such file")


def flower_environment(home: Path) -> dict[str, str]:
    """What a Flower process gets: quiet, its files under `home`, one thread, this one's tools and sources."""
    tools = str(Path(sys.executable).parent)
    path = os.pathsep.join((tools, os.environ.get("PATH", os.defpath)))
    sources = [
        str(Path(each).absolute()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each
    ]
    found = {"PYTHONPATH": os.pathsep.join(sources)} if sources else {}
    return {"OMP_NUM_THREADS": "1", **os.environ, **QUIET, **found, "FLWR_HOME": str(home), "PATH": path}


class FlowerClient:
    """Flower's own command line, pointed at one SuperLink, with a home folder of its own."""

    def __init__(self, superlink: SuperLink, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        connection = {
            "address": superlink.address,
            "root-certificates": str(superlink.root_certificates.resolve()),
        }
        text = f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n{_toml(connection)}'
        (home / "config.toml").write_text(text)
        self._environment = flower_environment(home)

    def register(self, public: Path) -> None:
        """Admit the node with this public key."""
        self._call("supernode", "register", str(public), _CONNECTION)

    def online(self) -> int:
        """How many nodes are connected."""
        nodes = self._call("supernode", "list", _CONNECTION)["nodes"]
        return sum(node["status"] == "online" for node in nodes)

    def start(self, app: Path, config: Mapping[str, str | float | bool] | None = None) -> int:
        """Start a run of the app in this folder, with this of its configuration set; its number."""
        pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in (config or {}).items())
        given = ("--run-config", pairs) if config else ()
        return int(self._call("run", str(app), _CONNECTION, *given)["run-id"])

    def status(self, run: int) -> str:
        """pending, running, finished:completed and so on."""
        return str(self._call("list", _CONNECTION, "--run-id", str(run))["runs"][0]["status"])

    def stop(self, run: int) -> None:
        """End a run."""
        self._call("stop", str(run), _CONNECTION)

    def _call(self, *arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "flwr.cli.app", *arguments, "--format", "json"]
        try:
            ran = subprocess.run(  # noqa: S603
                command,
                env=self._environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=_COMMAND_LIMIT,
            )
        except subprocess.TimeoutExpired as error:
            raise FederationFailed(f"flwr {arguments[0]}: no answer within {_COMMAND_LIMIT:g} s") from error
        try:
            answer = json.loads(ran.stdout)
        except ValueError:
            answer = {}
        if not isinstance(answer, dict) or not answer.get("success"):
            told = answer.get("error-message") if isinstance(answer, dict) else None
            line = " ".join(str(told or ran.stderr or ran.stdout).split())
            raise FederationFailed(f"flwr {arguments[0]}: {line[-400:] or 'failed without a word'}")
        return answer


def train_on(
    superlink: SuperLink,
    found: RunFile,
    out: Path,
    *,
    patience: Patience | None = None,
    resume: bool = False,
    workspace: Path | None = None,
    progress: Progress | None = None,
    ours: bool = False,
) -> dict[str, Any]:
    """Train the federation on a SuperLink, in the folder `out` of this machine, and return its result.

    With a `workspace`, whose stations the run file names, its guard stands over the run.
    Progress tells of rounds. Whatever interrupts the wait stops the run, unless the SuperLink is `ours` and
    ends with it; `resume` goes on with it.
    """
    with tempfile.TemporaryDirectory(prefix="zktrace-flower-") as name:
        folder = Path(name)
        client = FlowerClient(superlink, folder / "home")
        (folder / _RUN_FILE).write_bytes(found.to_bytes())
        told = _server_told(
            found.spec, folder, out, patience or Patience(), workspace=workspace, resume=resume
        )
        (folder / _SERVER_FILE).write_text(json.dumps(told))
        app = folder / "app"
        app.mkdir()
        config = {"server-file": str(folder / _SERVER_FILE)}
        (app / "pyproject.toml").write_text(_SHELL + _toml(config))
        watch = _Watch(out / "log.jsonl", progress or (lambda _: None))
        run = client.start(app)
        try:
            watch.until(folder / _OUTCOME, client, run)
        except BaseException:
            if not ours:
                with suppress(Error):  # what interrupted the wait is what the caller must hear of
                    client.stop(run)
            raise
        ended = json.loads((folder / _OUTCOME).read_bytes())
    if "error" in ended:
        raise InputError(str(ended["error"]))
    result: dict[str, Any] = ended["result"]
    return result


def _server_told(
    spec: RunSpec, folder: Path, out: Path, patience: Patience, *, workspace: Path | None, resume: bool
) -> dict[str, str | float | bool]:
    """What the ServerApp alone is told. Empty text stands for nothing."""
    return {
        "run-file": str(folder / _RUN_FILE),
        "outcome": str(folder / _OUTCOME),
        "workspace": "" if workspace is None else str(workspace.resolve()),
        "out": str(out.resolve()),
        "resume": resume,
        "cifar10": "" if spec.cifar10 is None else str(spec.cifar10.resolve()),
        "cache": "" if spec.cache is None else str(spec.cache.resolve()),
        "connect-timeout": patience.connect,
        "query-timeout": patience.query,
        "train-timeout": patience.train,
    }


class _Watch:
    """Reports the rounds that a run adds to its log."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._path, self._progress = path, progress
        self._seen = len(_log_lines(path))

    def until(self, outcome: Path, client: FlowerClient, run: int) -> None:
        """Wait for the outcome. A run that is over without one has failed."""
        looked = time.monotonic()
        while not outcome.exists():
            self._report()
            if time.monotonic() - looked > _STATUS_INTERVAL:
                status, looked = client.status(run), time.monotonic()
                if status.startswith(_ENDED) and not outcome.exists():
                    raise FederationFailed(
                        f"run {run} ended on the SuperLink without a result ({status}): see its log"
                    )
            time.sleep(0.5)
        self._report()

    def _report(self) -> None:
        lines = _log_lines(self._path)
        for line in lines[self._seen :]:
            self._progress(_report(json.loads(line)))
        self._seen = max(self._seen, len(lines))


def _log_lines(path: Path) -> list[str]:
    """The rounds so far. The file is replaced as a whole, so what is read is whole."""
    return path.read_text().splitlines() if path.exists() else []


def _report(line: Mapping[str, Any]) -> RoundReport:
    """A line of the log as the report that it was."""
    values: dict[str, Any] = {each.name: line.get(each.name) for each in fields(RoundReport)}
    for name in ("asked", "trained"):
        values[name] = tuple(values[name])
    for name in ("absent", "excluded"):
        values[name] = {int(station): reason for station, reason in values[name].items()}
    for name in ("loss", "penalty", "accuracy"):
        values[name] = float("nan") if values[name] is None else values[name]
    return RoundReport(**values)


def _toml(values: Mapping[str, str | float | bool]) -> str:
    """Lines of TOML; JSON writes text, numbers and switches alike."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
