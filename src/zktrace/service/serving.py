"""A running service: uvicorn in this process, workers in others; all end together."""

from dataclasses import dataclass
from pathlib import Path

import uvicorn

from zktrace.errors import InputError
from zktrace.front.workspace import Workspace
from zktrace.service.app import make_app
from zktrace.service.desk import FrontDesk, Settings
from zktrace.service.store import folder
from zktrace.service.uploads import sweep
from zktrace.service.worker import Crew


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a service listens."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None  # address or network of a proxy whose word for a visitor's address is taken

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS takes a certificate and its key: --tls-cert and --tls-key, or neither")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise InputError(f"{path}: is no file")

    @property
    def url(self) -> str:
        """The address, unless visitors know another."""
        scheme, usual = ("http", 80) if self.certificate is None else ("https", 443)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" + ("" if self.port == usual else f":{self.port}")


def serve(home: Workspace, listening: Listening, settings: Settings, *, workers: int) -> None:
    """Serve until the process is asked to end."""
    if workers < 0:
        raise InputError(f"{workers} workers: none is the least")
    app = make_app(home, settings)
    desk: FrontDesk = app.state.desk
    sweep(folder(home, "uploads"), desk.jobs.files())
    sweep(folder(home, "judged"), ())
    crew = Crew(home.root, workers)
    crew.start()
    try:
        uvicorn.run(
            app,
            host=listening.host,
            port=listening.port,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
            proxy_headers=listening.proxy is not None,
            forwarded_allow_ips=listening.proxy,
            server_header=False,
            ws="none",
            access_log=False,  # it would keep who asked for what
            log_level="warning",
            timeout_graceful_shutdown=5,
        )
    finally:
        crew.stop()
        home.database.close()
