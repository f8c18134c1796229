"""The engine for several machines: Flower carries the messages between the server and the stations' nodes.

    runfile     what the server and every node must agree on, as a small file
    records     a round's request and answer as Flower records
    app         ClientApp of a station, ServerApp of a federation
    engine      rounds over any Flower grid
    inprocess   a grid without network, for tests and studies
    superlink   run a federation on a SuperLink that is up
    loopback    a SuperLink and its SuperNodes on this machine, with TLS and node authentication

Flower reads these when it is imported. It sends telemetry and looks for updates unless told otherwise, and
its SuperLink installs what an app names as its dependencies. All three are off here unless the environment
says otherwise.
"""

import os

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}

for _name, _value in QUIET.items():
    os.environ.setdefault(_name, _value)
