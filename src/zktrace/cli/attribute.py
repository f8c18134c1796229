"""`zktrace attribute`: which credentials are represented in a shared model. Needs no torch."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.output import Json, emit
from zktrace.errors import InputError


def attribute(
    model: Annotated[Path, typer.Argument(help="The shared model: safetensors, npz or torch zip.")],
    public: Annotated[
        list[Path],
        typer.Option("--public", help="A station's public key; repeat it, in the order of the roster."),
    ],
    bits: Annotated[int, typer.Option("--bits", min=1, max=65536, help="Codeword length.")] = 128,
    seed: Annotated[str, typer.Option("--codebook", help="Public seed of the codebook.")] = "",
    raw: Annotated[
        bool, typer.Option("--raw", help="Marks of the paper's kind: read scales with their layer's mean.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read every station's component from a model's BatchNorm scales and compare it with all codewords.

    A match is statistical evidence of a codeword, not of its holder: public marks can be copied.
    """
    import numpy as np

    from zktrace.certificates.identity import agreement, cross_talk, radius_check
    from zktrace.credentials import PublicKey
    from zktrace.credentials.keys import FILE_LIMIT
    from zktrace.models import open_model
    from zktrace.primitives.files import read_bounded
    from zktrace.readouts.identity import DEFAULT_SEED, IdentityCodebook
    from zktrace.readouts.scales import layer_sizes

    if len(public) < 2:
        raise InputError("attribution compares at least two stations: give --public twice or more")
    arrays = open_model(model)
    keys = [PublicKey.from_bytes(read_bounded(path, limit=FILE_LIMIT)) for path in public]
    packed = np.array([list(key.codeword(bits)) for key in keys], dtype=np.uint8)
    words = np.unpackbits(packed, axis=1, count=bits)
    book = IdentityCodebook(
        stations=len(keys),
        bits=bits,
        layers=layer_sizes(arrays),
        raw=raw,
        seed=seed.encode() or DEFAULT_SEED,
    )
    extracted = book.extract(arrays)
    matrix, check = agreement(extracted, words), radius_check(extracted, words)
    names = [path.stem for path in public]
    stations: list[dict[str, object]] = [
        {
            "station": name,
            "agreement": float(matrix[i, i]),
            "best_other": float(np.delete(matrix[i], i).max()),
            "attributed": None if check.attributed[i] is None else names[check.attributed[i] or 0],
            "distance": check.distances[i],
            "within_radius": check.within[i],
        }
        for i, name in enumerate(names)
    ]
    facts = {
        "ok": True,
        "stations": stations,
        "attribution": check.correct / len(names),
        "self_agreement": float(matrix.diagonal().mean()),
        "cross_talk": cross_talk(matrix),
        "codeword_distance": check.min_distance,
    }
    emit(facts, as_json=as_json, text=_table(stations, facts))


def _table(stations: list[dict[str, object]], facts: dict[str, object]) -> str:
    width = max(len(str(row["station"])) for row in stations)
    lines = [f"{'station':<{width}}  agrees  best other  attributed to"]
    for row in stations:
        named = row["attributed"] or "several"
        proved = "" if not row["within_radius"] else ", proved by its distance"
        lines.append(
            f"{row['station']:<{width}}  {row['agreement']:6.3f}  {row['best_other']:10.3f}  {named}{proved}"
        )
    lines.append(
        f"attributed to themselves: {facts['attribution']:.1%}; agreement {facts['self_agreement']:.3f} "
        f"with the own codeword, {facts['cross_talk']:.3f} with others"
    )
    return "\n".join(lines)
