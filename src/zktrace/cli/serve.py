"""`zktrace serve` and the accounts of its visitors; a station's side: `zktrace login` and `zktrace fetch`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.interrupt import SERVICE, patience
from zktrace.cli.options import Force, Json, WorkspaceFolder, workspace_at
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.service.visitors import Accounts

app = typer.Typer(help="Accounts of the console: operators and auditors.", no_args_is_help=True)

ServiceAddress = Annotated[str, typer.Argument(help="Address of the service, http(s)://HOST[:PORT].")]
StationKey = Annotated[Path, typer.Option("--key", help="The station's secret key, NAME.key.")]
Authority = Annotated[
    Path | None,
    typer.Option("--authority", help="Certificates to trust, PEM, in place of those of this machine."),
]


def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8443,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", help="Address as visitors know it, behind a proxy for one. Default: as listened."
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", help="Certificate chain (PEM): serve by TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy",
            help="IP address or network of a proxy whose X-Forwarded-For is believed; several with commas.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes that do jobs; 0: another service has them.")
    ] = 1,
    upload_limit: Annotated[
        int, typer.Option("--upload-limit", min=1, help="Bytes of a model that is uploaded.")
    ] = 8 << 30,
    rate: Annotated[
        int,
        typer.Option("--rate", min=0, help="Requests a minute that one address may send (0: any number)."),
    ] = 1200,
    allow_weak_params: Annotated[
        bool,
        typer.Option(
            "--allow-weak-params", help="Let credentials of weak parameter sets sign in, for tests."
        ),
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Serve the workspace: an HTTP API and a console for browsers (docs/service.md).

    /healthz answers when it is ready. Accounts are made by `zktrace operator add`.
    """
    from zktrace.service.desk import Settings
    from zktrace.service.serving import Listening
    from zktrace.service.serving import serve as listen

    listening = Listening(host=host, port=port, certificate=tls_cert, key=tls_key, proxy=proxy)
    settings = Settings(
        url=url or listening.url,
        upload_limit=upload_limit,
        allow_weak_params=allow_weak_params,
        rate=rate,
    )
    home = workspace_at(workspace)

    def ready() -> None:
        facts = {"ok": True, "workspace": str(home.root), "url": settings.url}
        emit(facts, as_json=as_json, text=f"serving {home.root} at {settings.url}")
        sys.stdout.flush()

    with listening.opened() as sockets, patience(SERVICE):
        listen(home, listening, settings, sockets, workers=workers, ready=ready)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the account.")],
    auditor: Annotated[bool, typer.Option("--auditor", help="May read, and nothing else.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from the input, and do not ask.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Give an account that exists a new password and role.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Make an account for the console: an operator's, or an auditor's."""
    accounts = _accounts(workspace)
    role = "auditor" if auditor else "operator"
    accounts.add(name, role, _password(from_input=password_stdin), replace=force)
    emit({"ok": True, "account": name, "role": role}, as_json=as_json, text=f"{name}  {role}")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="Name of the account.")],
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Take an account away and sign it out everywhere."""
    _accounts(workspace).remove(name)
    emit({"ok": True, "account": name}, as_json=as_json, text=f"{name} is removed")


@app.command()
def totp(
    name: Annotated[str, typer.Argument(help="Name of the account.")],
    off: Annotated[bool, typer.Option("--off", help="The password alone is enough again.")] = False,
    code_stdin: Annotated[
        bool, typer.Option("--code-stdin", help="Read the code from the input, and do not ask.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Ask an account for a code of an authenticator as well as for its password.

    The address that is shown goes into an authenticator app. With the first code it takes effect, and the
    account is signed out.
    """
    from zktrace.service.totp import address, new_secret

    accounts = _accounts(workspace)
    if off:
        accounts.unprotect(name)
        text = f"{name} signs in with the password alone"
    else:
        accounts.check_unprotected(name)
        secret = new_secret()
        title = workspace_at(workspace).registry.known().ledger.setup.title
        typer.echo(f"{address(secret, name=f'{name} ({title})')}\nor typed: {secret}", err=as_json)
        accounts.protect(name, secret, _code(accounts, secret, from_input=code_stdin))
        text = f"{name} needs a code to sign in from now on"
    emit({"ok": True, "account": name, "second_factor": not off}, as_json=as_json, text=text)


@app.command("list")
def listed(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """List the accounts, their roles, and who needs a code to sign in."""
    found = _accounts(workspace).listed()
    facts = [{"account": each.name, "role": each.role, "second_factor": each.second_factor} for each in found]
    lines = [f"{each.name}  {each.role}{'  second factor' * each.second_factor}" for each in found]
    text = "\n".join(lines) or "no accounts (zktrace operator add NAME makes one)"
    emit({"ok": True, "accounts": facts}, as_json=as_json, text=text)


def login(url: ServiceAddress, key: StationKey, authority: Authority = None, as_json: Json = False) -> None:
    """Sign in at a service with a station's credential, and print a link for the browser that works once.

    What is signed is a challenge and the address given here: it is worth nothing to any other service.
    """
    from zktrace.front.credential import Credential
    from zktrace.service.client import Service

    link = Service.signed_in(url, Credential.load(key), authority=authority).link()
    emit({"ok": True, "link": link}, as_json=as_json, text=link)


def join(
    url: ServiceAddress,
    key: StationKey,
    invitation: Annotated[str, typer.Option("--invitation", help="The code that the operator gave you.")],
    authority: Authority = None,
    as_json: Json = False,
) -> None:
    """Enrol at a service, with an invitation of its operator. The key stays here; its proof is sent."""
    from zktrace.front.credential import Credential
    from zktrace.service.client import Service

    found = Service(url=url.rstrip("/"), authority=authority).join(Credential.load(key), invitation)
    name, place, entry = (found.get(each) for each in ("station", "place", "entry"))
    if key.stem != name:
        said = f"enrolled as {name}: name the key {name}.key, as {key.name} would sign in as {key.stem}"
    else:
        said = f"{name}  place {place}, entry {entry}"
    emit({"ok": True, **found}, as_json=as_json, text=said)


def fetch(
    url: ServiceAddress,
    key: StationKey,
    release: Annotated[str, typer.Option("--release", help="Which release the copy is of.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file. Default: RELEASE-STATION.safetensors, here.")
    ] = None,
    signed: Annotated[
        Path | None,
        typer.Option("--receipt", help="Sign for the copy, send the receipt, and keep it in this file."),
    ] = None,
    authority: Authority = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fetch a station's own copy from a service, and check its digest. An interrupted download goes on."""
    from zktrace.cli.progress import named_progress
    from zktrace.front.credential import Credential
    from zktrace.primitives.files import write_atomic
    from zktrace.service.client import Service

    credential = Credential.load(key)
    path = out or Path(f"{release}-{credential.name}.safetensors")
    for each in (path, *(() if signed is None else (signed,))):
        check_free(each, force=force)
    service = Service.signed_in(url, credential, authority=authority)
    with named_progress("copy", 2) as progress:
        digest = service.fetch(release, path, replace=force, progress=progress)
    facts = {"ok": True, "file": str(path), "digest": digest.hex(), "release": release}
    text = f"{path}\n{digest.hex()}"
    if signed is not None:
        receipt, entry = service.sign(credential.key, release, path)
        write_atomic(signed, receipt.to_bytes() + b"\n", replace=force)
        facts |= {"receipt": str(signed), "entry": entry}
        text = f"{text}\n{signed}  signed for, entry {entry} of the log"
    emit(facts, as_json=as_json, text=text)


def _accounts(workspace: Path | None) -> "Accounts":
    from zktrace.service.store import prepared
    from zktrace.service.visitors import Accounts

    return Accounts(prepared(workspace_at(workspace)))


def _code(accounts: "Accounts", secret: str, *, from_input: bool) -> str:
    """Asked for until it is right; or the first line of the input."""
    if from_input:
        return sys.stdin.readline()
    if not sys.stdin.isatty():
        raise InputError("a code is asked for on a terminal; elsewhere give it with --code-stdin")

    def checked(code: str) -> str:
        try:
            accounts.step_now(secret, code)
        except InputError as error:
            raise typer.BadParameter(str(error)) from error
        return code

    return str(typer.prompt("Code", err=True, value_proc=checked))


def _password(*, from_input: bool) -> str:
    """Asked for twice, without showing it; or the first line of the input."""
    if from_input:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise InputError("a password is asked for on a terminal; elsewhere give it with --password-stdin")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
