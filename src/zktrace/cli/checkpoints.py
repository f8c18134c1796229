"""A log that others watch: `zktrace log key | checkpoint | witness | cosign | proof | check | compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.files import read_as
from zktrace.cli.options import Force, Json, WorkspaceFolder, workspace_at
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.registry.witnessing import PublicLog
    from zktrace.transparency.asking import Witnessed
    from zktrace.transparency.keys import Kind
    from zktrace.transparency.note import Note
    from zktrace.transparency.trust import TrustedCheckpoint

Algorithms = Annotated[
    list[str] | None,
    typer.Option("--algorithm", help="ed25519 (the default) or ml-dsa-44; repeat it for both."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Write it to this file.")]
PolicyFile = Annotated[
    Path, typer.Option("--policy", help="A judge's policy: its logs, witnesses and min_witnesses count here.")
]
CheckpointFile = Annotated[Path, typer.Argument(help="A checkpoint.")]


def kinds_of(algorithms: list[str] | None, *, ed25519: "Kind") -> "tuple[Kind, ...]":
    """What keys of these algorithms are, where that of Ed25519 depends on who signs."""
    from zktrace.transparency.keys import Kind

    known = {"ed25519": ed25519, "ml-dsa-44": Kind.ML_DSA_COSIGNATURE}
    for each in algorithms or ():
        if each not in known:
            raise InputError(f"--algorithm is {' or '.join(known)}, not {each}")
    return tuple(dict.fromkeys(known[each] for each in algorithms or ("ed25519",)))


def key(
    origin: Annotated[
        str, typer.Option("--origin", help="The log's own name for ever, as north.example/gnss; no spaces.")
    ],
    algorithm: Algorithms = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Make the key that signs for the log, and print what judges and witnesses need of it. Publish that."""
    from zktrace.transparency.keys import Kind

    made = _log_of(workspace).make_keys(origin, kinds_of(algorithm, ed25519=Kind.NOTE))
    lines = [each.to_text() for each in made]
    emit({"ok": True, "origin": origin, "keys": lines}, as_json=as_json, text="\n".join(lines))


def checkpoint(
    out: Out = None, workspace: WorkspaceFolder = None, force: Force = False, as_json: Json = False
) -> None:
    """Sign the head of the log as it is now: a checkpoint (c2sp.org/tlog-checkpoint).

    Nothing is signed that does not extend what was signed before.
    """
    if out is not None:
        check_free(out, force=force)
    _emit_note(_log_of(workspace).sign(), out, force=force, as_json=as_json)


def witness(
    vkey: Annotated[
        str | None, typer.Argument(help="The witness's line, from `zktrace witness new`.")
    ] = None,
    url: Annotated[
        str, typer.Option("--url", help="Where it is asked (http://HOST:PORT); without one, by files.")
    ] = "",
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Ask this witness for cosignatures from now on; without a line, list those that are asked."""
    from zktrace.transparency.keys import Verifier

    log = _log_of(workspace)
    if vkey is not None:
        log.add_witness(Verifier.from_text(vkey.strip()), url)
    known = log.witnesses()
    facts = [{"name": each.key.name, "key": each.key.to_text(), "url": each.url} for each in known]
    text = "\n".join(f"{each.key.name}  {each.url or 'asked by files'}" for each in known)
    emit({"ok": True, "witnesses": facts}, as_json=as_json, text=text or "no witness is asked yet")


def cosign(
    out: Out = None,
    by: Annotated[
        str | None, typer.Option("--by", help="One witness alone, with --request or --answer.")
    ] = None,
    request: Annotated[
        Path | None, typer.Option("--request", help="Write what to ask it there, and ask nobody.")
    ] = None,
    old: Annotated[
        int | None, typer.Option("--old", min=0, help="With --request: the size that it knows.")
    ] = None,
    answer: Annotated[Path | None, typer.Option("--answer", help="Take what it answered from there.")] = None,
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Have witnesses cosign the head of the log: over HTTP all that have an address, or one by files.

    Exit code 1 if a witness has seen another log under this name.
    """
    from zktrace.transparency.asking import check_fork

    for path in (out, request):
        if path is not None:
            check_free(path, force=force)
    log = _log_of(workspace)
    if by is None:
        if request is not None or answer is not None or old is not None:
            raise InputError("--request, --old and --answer go with --by, the name of a witness")
        note, found = log.cosign()
    elif request is not None and answer is None:
        _write_request(log, by, request, old=old, force=force, as_json=as_json)
        return
    elif answer is not None and request is None and old is None:
        note, one = log.take(by, read_as(answer, "a witness's answer", bytes.decode, limit=1 << 18))
        found = (one,)
    else:
        raise InputError("--by goes with --request, which may have --old, or with --answer")
    _emit_note(note, out, force=force, as_json=as_json, found=found)
    check_fork(found)


def proof(
    index: Annotated[int, typer.Argument(min=0, help="Which entry, counted from 0.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write it; such files end in .tlog-proof.")],
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write an entry with its proof under the last checkpoint and its cosignatures (c2sp.org/tlog-proof)."""
    from zktrace.primitives.files import write_atomic

    check_free(out, force=force)
    made = _log_of(workspace).proof(index)
    data = made.to_bytes()
    write_atomic(out, data, replace=force)
    facts = {"ok": True, "proof": str(out), "index": index, "bytes": len(data)}
    emit(facts, as_json=as_json, text=f"{out}  entry {index}, {len(made.path)} hashes, its checkpoint")


def check(
    file: Annotated[Path, typer.Argument(help="A checkpoint, or a .tlog-proof.")],
    policy: PolicyFile,
    as_json: Json = False,
) -> None:
    """Check a checkpoint or a log proof offline, by the keys of a policy. Exit code 1: it does not hold."""
    from zktrace.court.policy import Policy
    from zktrace.registry.records import Entry
    from zktrace.transparency.proof import FILE_LIMIT, FORMAT, LogProof

    trust = Policy.read(policy).trust
    data = read_as(file, "a checkpoint or a log proof", bytes, limit=FILE_LIMIT)
    facts: dict[str, object] = {"ok": True}
    if not data.startswith(FORMAT.encode()):
        opened, text = trust.open(data), ""
    else:
        proven = LogProof.from_bytes(data)
        opened = proven.verify(trust)
        entry = Entry.from_bytes(proven.extra or b"")
        facts |= {
            "index": proven.index,
            "kind": entry.record.kind,
            "at": entry.at,
            "body": entry.record.as_json(),
        }
        text = f"entry {proven.index} is under the checkpoint: {entry.record.kind}, {entry.at}\n"
    facts |= _facts(opened)
    emit(facts, as_json=as_json, text=f"{text}{opened}\n{facts['head']}")


def compare(
    one: CheckpointFile,
    other: Annotated[Path, typer.Argument(help="Another one.")],
    policy: PolicyFile,
    consistency: Annotated[
        Path | None, typer.Option("--consistency", help="What `log prove --since` wrote for the two.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Whether two checkpoints are of one log.

    Exit code 0: they are; 1: a fork, or the proof does not hold; 2: nothing that was given tells.
    """
    from zktrace.court.policy import Policy
    from zktrace.registry.log import PROOF_FILE_LIMIT, Extension
    from zktrace.registry.witnessing import check_same_log

    trust = Policy.read(policy).trust
    opened = [trust.open(read_as(each, "a checkpoint", bytes, limit=1 << 18)) for each in (one, other)]
    what = "a consistency proof (zktrace log prove --since)"
    proof = None
    if consistency is not None:
        proof = read_as(consistency, what, Extension.from_bytes, limit=PROOF_FILE_LIMIT)
    old, new = check_same_log(opened[0], opened[1], proof)
    facts = {"ok": True, "old": _facts(old), "new": _facts(new)}
    emit(facts, as_json=as_json, text=f"one log: {new.checkpoint.size} entries extend {old.checkpoint.size}")


def _log_of(workspace: Path | None) -> "PublicLog":
    from zktrace.registry.witnessing import PublicLog

    return PublicLog(workspace_at(workspace))


def _write_request(
    log: "PublicLog", name: str, path: Path, *, old: int | None, force: bool, as_json: bool
) -> None:
    from zktrace.primitives.files import write_atomic

    made = log.request(name, old=old)
    write_atomic(path, made.to_bytes(), replace=force)
    facts = {"ok": True, "request": str(path), "witness": name, "old": made.old}
    emit(facts, as_json=as_json, text=f"{path}  for {name}, since {made.old} entries")


def _emit_note(
    note: "Note", out: Path | None, *, force: bool, as_json: bool, found: "tuple[Witnessed, ...]" = ()
) -> None:
    from zktrace.primitives.files import write_atomic
    from zktrace.transparency.checkpoint import LogCheckpoint
    from zktrace.transparency.trust import moment

    head, data = LogCheckpoint.from_text(note.text), note.to_bytes()
    if out is not None:
        write_atomic(out, data, replace=force)
    lines = [
        f"{each.name}  cosigned at {moment(each.at)}" if each.signature else f"{each.name}  no: {each.reason}"
        for each in found
    ]
    shown = data.decode().rstrip("\n") if out is None else f"{out}  {head.origin}, {head.size} entries"
    facts = {
        "ok": True,
        "origin": head.origin,
        "size": head.size,
        "root": head.root.hex(),
        "checkpoint": data.decode(),
        "witnesses": [
            {"name": each.name, "cosigned": each.signature is not None, "at": each.at, "reason": each.reason}
            for each in found
        ],
    }
    emit(facts, as_json=as_json, text="\n".join([*lines, shown]))


def _facts(opened: "TrustedCheckpoint") -> dict[str, object]:
    from zktrace.registry.witnessing import head_of

    head = opened.checkpoint
    return {
        "head": head_of(head).to_text(),
        "origin": head.origin,
        "size": head.size,
        "root": head.root.hex(),
        "witnesses": [{"name": each.name, "at": each.at} for each in opened.witnesses],
    }
