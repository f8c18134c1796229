"""`zktrace credential`: keys, and proofs of holding them."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.about import About, binding_of, component_of
from zktrace.cli.enrolment import request
from zktrace.cli.files import public_key, read_as, secret_key
from zktrace.cli.options import AllowWeak, Force, Json, Raw, WorkspaceFolder
from zktrace.cli.output import check_free, emit, say
from zktrace.cli.receipts import receipt
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.credentials import ModelBinding, PublicKey, XLPNParams

app = typer.Typer(help="Create credentials; prove and verify that a station holds one.", no_args_is_help=True)

Model = Annotated[Path | None, typer.Option("--model", help="Bind to this model's complete state.")]
ComponentFile = Annotated[
    Path | None,
    typer.Option(
        "--component", help="With --model, without a registry: identity bits as given, a line of 0 and 1."
    ),
]
Station = Annotated[
    str | None,
    typer.Option("--station", help="With --model: read this station's identity bits from the model."),
]
Message = Annotated[Path | None, typer.Option("--message", help="Bind to this file: a signature.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the station; makes NAME.key and NAME.pub.")],
    params: Annotated[
        str, typer.Option("--params", help="Parameter set; any other than the default is weak.")
    ] = "xlpn-1280-640-132",
    folder: Annotated[Path, typer.Option("--dir", help="Where to write the two files.")] = Path(),
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing files. The old key is lost.")
    ] = False,
    allow_weak_params: AllowWeak = False,
    as_json: Json = False,
) -> None:
    """Create a credential: a secret key (mode 0600) and its public key."""
    from zktrace.credentials import by_name
    from zktrace.front.credential import Credential, check_strong

    chosen = by_name(params)
    check_strong("--params", chosen, allowed=allow_weak_params)
    start = time.perf_counter()
    made = Credential.new(name, params=chosen, allow_weak_params=allow_weak_params)
    public = made.public
    elapsed = time.perf_counter() - start
    secret_path, public_path = made.files(folder)
    for path in (secret_path, public_path):
        check_free(path, force=force)
    made.save(folder, replace=force)
    facts = _describe(public) | {
        "ok": True,
        "secret_key": str(secret_path),
        "public_key": str(public_path),
        "public_bytes": len(public.to_bytes()),
        "generate_ms": round(elapsed * 1e3, 3),
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{secret_path}  secret key, keep it ({chosen.name})\n"
        f"{public_path}  public key {facts['fingerprint']}{_warning(chosen)}",
    )


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A public or secret key.")],
    bits: Annotated[int, typer.Option("--bits", min=1, max=65536, help="Length of the codeword.")] = 128,
    codeword: Annotated[
        bool, typer.Option("--codeword", help="Print nothing but the codeword as a line of 0 and 1.")
    ] = False,
    public_out: Annotated[
        Path | None, typer.Option("--public-out", help="Write the public key to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe a key. Of a secret key only the public part is shown."""
    from zktrace.credentials.keys import FILE_LIMIT, SECRET_MAGIC, PublicKey, SecretKey
    from zktrace.primitives.files import write_atomic

    def read(data: bytes) -> tuple[bool, PublicKey]:
        secret = data.startswith(SECRET_MAGIC)
        return secret, SecretKey.from_bytes(data).public if secret else PublicKey.from_bytes(data)

    secret, public = read_as(file, "a key (.key or .pub)", read, limit=FILE_LIMIT)
    if public_out is not None:
        write_atomic(public_out, public.to_bytes())
    facts = _describe(public, bits) | {"ok": True, "kind": "secret" if secret else "public"}
    if codeword and not as_json:
        say(str(facts["codeword"]))
        return
    text = "\n".join(f"{label:<12} {facts[label]}" for label in ("kind", "params", "fingerprint", "codeword"))
    emit(facts, as_json=as_json, text=text)


@app.command()
def component(
    model: Annotated[Path, typer.Argument(help="The model: safetensors, npz or torch zip.")],
    station: Annotated[str, typer.Option("--station", help="Whose block of the public codebook to read.")],
    workspace: WorkspaceFolder = None,
    raw: Raw = False,
    as_json: Json = False,
) -> None:
    """Read a station's identity bits from a model, as `prove` and `verify` take them with --component.

    The codebook's block is the station's row, so stations are enrolled in the order of the training roster.
    """
    from zktrace.models import open_model

    found, public = component_of(open_model(model), station, workspace, raw=raw)
    distance = found.distance(public)
    facts = {"ok": True, "component": found.to_text().strip(), "differs": distance, "bits": found.bits}
    emit(facts, as_json=as_json, text=found.to_text().strip())


@app.command()
def prove(
    key: Annotated[Path, typer.Option("--key", help="The secret key.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the proof.")],
    model: Model = None,
    station: Station = None,
    component: ComponentFile = None,
    message: Message = None,
    workspace: WorkspaceFolder = None,
    raw: Raw = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Prove knowledge of a credential's secret, in zero knowledge.

    With --model and --station the proof speaks of that model's bytes and the station's bits in it, with
    --message it is a signature over that file, with neither it proves the credential alone.
    """
    from zktrace.credentials import prove as make_proof
    from zktrace.primitives.files import write_atomic

    check_free(out, force=force)
    if out.resolve() == key.resolve():
        raise Refused(f"{out}: is the secret key; write the proof elsewhere")
    secret = secret_key(key)
    about = About(
        model=model, station=station, component=component, message=message, workspace=workspace, raw=raw
    )
    binding = binding_of(about, secret.public)
    start = time.perf_counter()
    data = make_proof(secret, binding).to_bytes()
    elapsed = time.perf_counter() - start
    write_atomic(out, data, replace=force)
    mode = binding.mode.name.lower()
    facts: dict[str, object] = {
        "ok": True,
        "proof": str(out),
        "mode": mode,
        "params": secret.params.name,
        "rounds": secret.params.rounds,
        "proof_bytes": len(data),
        "prove_ms": round(elapsed * 1e3, 3),
    }
    text = f"{out}  {mode} proof, {len(data)} bytes, {elapsed * 1e3:.0f} ms"
    if model is not None:
        facts["component_source"] = about.source
        text += f"\n{about.source}"
    emit(facts, as_json=as_json, text=text)


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(help="The proof.")],
    public: Annotated[Path, typer.Option("--public", help="The public key it should belong to.")],
    model: Model = None,
    station: Station = None,
    component: ComponentFile = None,
    message: Message = None,
    workspace: WorkspaceFolder = None,
    raw: Raw = False,
    radius: Annotated[
        int | None,
        typer.Option("--radius", min=0, help="With --model: component bits that may be wrong (default 0)."),
    ] = None,
    allow_weak_params: AllowWeak = False,
    as_json: Json = False,
) -> None:
    """Check a proof. Exit code 0: it holds; 1: it does not; 2: something cannot be read."""
    from zktrace.credentials import ModelBinding, Proof
    from zktrace.credentials import verify as check_proof
    from zktrace.credentials.proof import FILE_LIMIT
    from zktrace.front.credential import check_strong

    if radius is not None and model is None:
        raise InputError("--radius belongs to --model")
    statement = public_key(public)
    check_strong(str(public), statement.params, allowed=allow_weak_params)  # before anything large is read
    size, decoded = read_as(  # before a large model or message is hashed
        proof,
        "a proof (zktrace credential prove)",
        lambda data: (len(data), Proof.from_bytes(data)),
        limit=FILE_LIMIT,
    )
    about = About(
        model=model, station=station, component=component, message=message, workspace=workspace, raw=raw
    )
    binding = binding_of(about, statement)
    if isinstance(binding, ModelBinding) and (radius or 0) >= binding.component.bits:
        raise InputError(f"a radius of {radius} accepts every component of {binding.component.bits} bits")
    start = time.perf_counter()
    check_proof(statement, binding, decoded, radius=radius or 0, allow_weak_params=allow_weak_params)
    elapsed = time.perf_counter() - start
    facts: dict[str, object] = {
        "ok": True,
        "mode": binding.mode.name.lower(),
        "params": statement.params.name,
        "standing": statement.params.standing.value,
        "rounds": statement.params.rounds,
        "fingerprint": statement.fingerprint.hex(),
        "proof_bytes": size,
        "verify_ms": round(elapsed * 1e3, 3),
    }
    text = f"valid {facts['mode']} proof by {facts['fingerprint']}"
    if isinstance(binding, ModelBinding):
        found = _component_facts(binding, statement) | {
            "component_source": about.source,
            "radius": radius or 0,
        }
        facts |= found
        text += (
            f"\nmodel {found['model_digest']}, {found['component_distance']} of {found['component_bits']} "
            f"component bits differ from the codeword ({found['radius']} allowed)\n{about.source}"
        )
    emit(facts, as_json=as_json, text=text + _warning(statement.params))


def _component_facts(binding: "ModelBinding", public: "PublicKey") -> dict[str, object]:
    """What a proof about a model says of the station's bits in it."""
    return {
        "model_digest": binding.state_digest.hex(),
        "component_bits": binding.component.bits,
        "component_distance": binding.component.distance(public),
    }


app.command("request")(request)
app.command("receipt")(receipt)


def _warning(params: "XLPNParams") -> str:
    return f"\nwarning: {params.name} {params.weakness}" if params.weakness else ""


def _describe(public: "PublicKey", bits: int = 128) -> dict[str, object]:
    from zktrace.credentials import Component

    word = Component(bits=bits, packed=public.codeword(bits))
    return {
        "params": public.params.name,
        "standing": public.params.standing.value,
        "fingerprint": public.fingerprint.hex(),
        "codeword": word.to_text(),
    }
