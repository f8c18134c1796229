"""The unit and the container file start a service that can be reached: options that fit each other."""

import json
import re
import shlex
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from uvicorn.middleware.proxy_headers import _TrustedHosts

from zktrace.cli.app import app
from zktrace.service.desk import Settings

ROOT = Path(__file__).parents[2]
HERE = ROOT / "examples" / "service"


def read(name: str) -> str:
    """A file, its long lines put together."""
    return (HERE / name).read_text().replace("\\\n", " ")


def unit() -> list[str]:
    text = read("zktrace.service")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    return shlex.split(line)


def container() -> list[str]:
    text = read("Containerfile")
    words: list[str] = []
    for name in ("ENTRYPOINT", "CMD"):
        (line,) = re.findall(rf"^{name} (.*)$", text, re.MULTILINE)
        words += json.loads(line)
    return words


def run_by_hand() -> list[str]:
    """As the container file says that it is run: what stands after the image is in the place of CMD."""
    text = read("Containerfile")
    (run,) = re.findall(r"podman run .* zktrace (--.*)$", text, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    return [*json.loads(entry), *shlex.split(run)]


COMMANDS = {"unit": unit, "container": container, "by hand": run_by_hand}


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of a command."""
    assert Path(words[0]).name == "zktrace"
    command: Any = typer.main.get_command(app)
    found: dict[str, Any] = command.commands[words[1]].make_context(words[1], words[2:]).params
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_reached_where_visitors_look_for_it(name: str) -> None:
    words = COMMANDS[name]()
    assert words[1] == "serve"
    given = parsed(words)
    settings = Settings(url=given["url"])
    assert settings.secure
    host, own_tls = ip_address(given["host"]), given["tls_cert"] is not None
    assert own_tls == (given["tls_key"] is not None)
    if own_tls:  # visitors come straight here
        assert not host.is_loopback, "a public address, and it listens for this machine alone"
        assert (urlsplit(given["url"]).port or 443) == given["port"]
    else:  # somebody else does TLS, and all visitors come from there
        assert given["proxy"], "all visitors would share the proxy's rate"
        assert given["proxy"] != "*", "then anybody's word is taken"
        inside = ip_network(given["proxy"])[1]
        assert str(inside) in _TrustedHosts(given["proxy"])
        assert host.is_loopback or host.is_unspecified


def test_the_network_of_the_container_file_is_the_one_that_is_believed() -> None:
    text = read("Containerfile")
    (made,) = re.findall(r"--subnet (\S+)", text)
    assert made == parsed(container())["proxy"]


def test_what_goes_into_the_image_is_named() -> None:
    """Everything else, as environments, histories and workspaces, stays outside."""
    lines = [
        each
        for each in (ROOT / ".dockerignore").read_text().splitlines()
        if each and not each.startswith("#")
    ]
    assert lines[0] == "*"
    kept = {each[1:] for each in lines if each.startswith("!")}
    assert all((ROOT / each).exists() for each in kept)
    built = (ROOT / "pyproject.toml").read_text()
    wanted = {"src", "pyproject.toml", "constraints.txt"}
    wanted |= {each for each in ("README.md", "LICENSE") if f'"{each}"' in built}
    assert kept == wanted
