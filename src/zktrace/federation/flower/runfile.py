"""The run file: preset, seed and codewords of a federation, for the server and a copy for every node.

JSON, a few kilobytes:

    version  zkt-run-v1
    preset   TOML text
    seed     decides everything that is random
    stations their names, in the order of the roster; none: they are numbered
    rows     their rows in the registry, in the same order; none: 0, 1, 2 ...
    words    the stations' codewords in hexadecimal, in the order of the roster; none: no marks
    nodes    the stations' node keys (lines of OpenSSH), in the same order; none: nodes are believed

Where data lies is no part of it: each machine says that for itself.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from zktrace.errors import InputError, MalformedFile
from zktrace.federation.spec import RunSpec
from zktrace.learning.presets import Preset, parse_preset
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.readouts.identity import ROWS_LIMIT

VERSION: Final = "zkt-run-v1"
_KEYS: Final = {"version", "preset", "seed", "stations", "rows", "words", "nodes"}
_LARGEST: Final = 1 << 26


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """A federation and, where they are known, its stations' node keys."""

    spec: RunSpec
    nodes: tuple[str, ...] = ()  # OpenSSH public keys in the order of the roster

    def __post_init__(self) -> None:
        clients = self.spec.preset.federation.clients
        if self.nodes and len(self.nodes) != clients:
            raise InputError(f"{len(self.nodes)} node keys for {clients} stations: one for each")
        if len({node_key(line) for line in self.nodes}) != len(self.nodes):
            raise InputError("two stations have the same node key")

    def to_bytes(self) -> bytes:
        """The content of the file."""
        content = {
            "version": VERSION,
            "preset": preset_toml(self.spec.preset),
            "seed": self.spec.seed,
            "stations": list(self.spec.names),
            "rows": list(self.spec.rows),
            "words": [word.hex() for word in self.spec.words],
            "nodes": list(self.nodes),
        }
        return (json.dumps(content, indent=1) + "\n").encode()


def write_run_file(path: Path, spec: RunSpec, *, nodes: Sequence[str] = (), replace: bool = False) -> None:
    """Write the run file of a federation."""
    write_atomic(path, RunFile(spec=spec, nodes=tuple(nodes)).to_bytes(), replace=replace)


def read_run_file(path: Path, *, cifar10: Path | None = None, cache: Path | None = None) -> RunFile:
    """Read a run file; the folders are this machine's."""
    found = parse_run_file(read_bounded(path, limit=_LARGEST), source=str(path))
    return replace(found, spec=replace(found.spec, cifar10=cifar10, cache=cache))


def parse_run_file(data: bytes, *, source: str) -> RunFile:
    """A run file from its bytes. `source` is what errors call it."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"{source}: not a run file (no JSON)") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise MalformedFile(f"{source}: not a run file of version {VERSION}")
    if set(content) != _KEYS:
        raise MalformedFile(f"{source}: a run file has the keys {', '.join(sorted(_KEYS))}, each once")
    text, seed = content["preset"], content["seed"]
    if not isinstance(text, str) or type(seed) is not int or seed < 0:
        raise MalformedFile(f"{source}: preset must be text, seed a whole number of at least 0")
    preset = parse_preset(text, source=f"{source}, preset")
    words = tuple(_word(source, each, preset.marks.bits) for each in _texts(source, content, "words"))
    try:
        return RunFile(
            spec=RunSpec(
                preset=preset,
                seed=seed,
                words=words,
                names=tuple(_texts(source, content, "stations")),
                rows=_rows(source, content["rows"]),
            ),
            nodes=tuple(_texts(source, content, "nodes")),
        )
    except InputError as error:
        raise MalformedFile(f"{source}: {error}") from error


def preset_toml(preset: Preset) -> str:
    """The TOML text of a preset. Its values are numbers, names and switches: JSON writes those alike."""
    sections = (
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        for name, section in preset.as_dict().items()
    )
    return "\n".join(sections)


def node_key(line: str) -> bytes:
    """A node's public key in the form in which a SuperLink keeps it. `line` is OpenSSH's."""
    try:
        key = load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("a node key must be a line of OpenSSH (ssh-keygen -t ecdsa -b 384)") from error
    if not isinstance(key, EllipticCurvePublicKey):
        raise InputError("a node key must be ECDSA (ssh-keygen -t ecdsa -b 384)")
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _texts(source: str, content: dict[str, Any], key: str) -> list[str]:
    values = content[key]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise MalformedFile(f"{source}: {key} must be a list of texts")
    return values


def _rows(source: str, values: object) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(
        type(each) is int and 0 <= each < ROWS_LIMIT for each in values
    ):
        raise MalformedFile(f"{source}: rows must be a list of whole numbers below {ROWS_LIMIT}")
    return tuple(values)


def _word(source: str, text: str, bits: int) -> bytes:
    try:
        word = bytes.fromhex(text)
    except ValueError as error:
        raise MalformedFile(f"{source}: a codeword is not hexadecimal") from error
    if len(word) != (bits + 7) // 8:
        raise MalformedFile(f"{source}: a codeword of {len(word)} bytes for {bits} bits")
    return word
