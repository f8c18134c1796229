"""`zktrace bounds`: the calculators of the paper, rounded to the safe side."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from zktrace.cli.options import Json
from zktrace.cli.output import emit
from zktrace.errors import InputError

app = typer.Typer(
    help="Thresholds, lengths, presence radius, rounds, hardness: what may be claimed. Scores have no unit; "
    "probabilities lie between 0 and 1.",
    no_args_is_help=True,
)

Length = Annotated[int, typer.Option("--length", min=1, help="Positions of the tracing code.")]
Colluders = Annotated[int, typer.Option("--colluders", min=2, help="Coalition size c the code is made for.")]
Recipients = Annotated[int, typer.Option("--recipients", min=1, help="Enrolled recipients N.")]
Level = Annotated[float, typer.Option("--budget", help="False-accusation probability allowed, e.g. 1e-3.")]
Flip = Annotated[float, typer.Option("--flip", help="Residual flip rate q of a decoded bit, below 1/2.")]


def _show(facts: Mapping[str, object], *, as_json: bool) -> None:
    width = max(len(name) for name in facts)
    text = "\n".join(f"{name.replace('_', ' '):<{width}}  {_plain(value)}" for name, value in facts.items())
    emit({"ok": True, **facts}, as_json=as_json, text=text)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(_plain(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    return str(value)  # a float prints all its digits: it is already rounded to the safe side


@app.command()
def threshold(
    length: Length = 512,
    colluders: Colluders = 2,
    recipients: Recipients = 10,
    level: Level = 1e-3,
    carriers: Annotated[int, typer.Option("--carriers", min=1, help="Carriers K read together.")] = 1,
    as_json: Json = False,
) -> None:
    """Thresholds that hold before any word is read.

    The candidate needs a certificate; Bernstein's holds for every word and code (of the score before its
    coefficients are rounded to 1/256); the a-priori one holds over the draw of the code. The least certified
    threshold depends on the word: `bounds certificate`.
    """
    from zktrace.certificates import finite, lengths
    from zktrace.certificates.level import exact_level

    code = finite.TracingCode(design=colluders, length=length, scale_bits=8)  # the score as deployed
    tail = exact_level(level) / (2 * carriers)
    apriori = finite.soundness_threshold(code=code, recipients=recipients, level=tail)
    _show(
        {
            "candidate_one_tail": lengths.candidate_threshold(
                length=length, recipients=recipients, level=level, carriers=carriers
            ),
            "candidate": lengths.candidate_threshold(
                length=length, recipients=recipients, level=level, tails=2, carriers=carriers
            ),
            "apriori": apriori.value,
            "bernstein": lengths.bernstein_threshold(
                design=colluders, length=length, recipients=recipients, level=tail
            ),
        },
        as_json=as_json,
    )


@app.command()
def certificate(
    file: Annotated[
        Path,
        typer.Argument(
            help="npz or safetensors with 'thresholds' (biases times 2^32) and 'word' or 'values'."
        ),
    ],
    colluders: Colluders = 2,
    recipients: Recipients = 10,
    level: Annotated[
        float, typer.Option("--budget", help="False-accusation probability of this one tail.")
    ] = 5e-4,
    method: Annotated[
        Literal["exact", "chernoff"], typer.Option("--method", help="How the tail is bounded.")
    ] = "exact",
    as_json: Json = False,
) -> None:
    """The least certified threshold of a decoded word (0/1) or of a real-valued readout."""
    from zktrace.certificates.certificate import smallest_threshold
    from zktrace.certificates.intervals import upper_float
    from zktrace.codes import Biases, soft, symmetric
    from zktrace.models import open_model

    arrays = open_model(file)
    if "thresholds" not in arrays or ("word" in arrays) == ("values" in arrays):
        raise InputError(f"{file}: needs an array 'thresholds' and one of 'word' and 'values'")
    biases = Biases(thresholds=arrays["thresholds"], colluders=colluders)
    coefficients = symmetric(arrays["word"], biases) if "word" in arrays else soft(arrays["values"], biases)
    found = smallest_threshold(coefficients, recipients=recipients, level=level, method=method)
    _show(
        {
            "threshold": upper_float(found.threshold),
            "threshold_exact": str(found.threshold),
            "method": found.method,
            "recipients": found.recipients,
            "budget": str(found.level),
            "exponent_lower": found.exponent[0],
            "exponent_required": found.required,
            "tilt": found.tilt,
            "law": found.law,
        },
        as_json=as_json,
    )


@app.command()
def finite(
    colluders: Colluders = 2,
    length: Length = 512,
    flip: Flip = 0.04,
    recipients: Recipients = 10,
    level: Level = 1e-3,
    method: Annotated[
        Literal["tight", "paper"],
        typer.Option("--method", help="Rigorous integration, or the paper's 4096 panels."),
    ] = "tight",
    scale_bits: Annotated[
        int | None,
        typer.Option("--scale-bits", min=1, max=24, help="For coefficients rounded to 2^-S (deployed: 8)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A threshold no innocent passes, and a bound on missing every colluder, for all coalitions up to c.

    It is a fixed threshold, which neither rule of `zktrace trace` uses: theirs depend on the readout.
    """
    from zktrace.certificates.finite import TracingCode, finite_guarantee

    bias_bits = None if method == "paper" else 32
    code = TracingCode(design=colluders, length=length, bias_bits=bias_bits, scale_bits=scale_bits)
    found = finite_guarantee(code=code, recipients=recipients, level=level, flip=flip, method=method)
    _show(
        {
            "threshold": found.threshold,
            "missed_bound": found.missed_bound,
            "per_size": [
                {"size": each.size, "missed_bound": each.bound, "t": each.t} for each in found.per_size
            ],
            "method": found.method,
            "a": found.a,
        },
        as_json=as_json,
    )


@app.command()
def presence(
    bits: Annotated[int, typer.Option("--bits", min=1, help="Length n of a codeword.")] = 128,
    target_log2: Annotated[
        int, typer.Option("--target-log2", min=0, help="k: false acceptance at most 2^-k.")
    ] = 128,
    accuracy: Annotated[
        float, typer.Option("--accuracy", help="Chance that a bit is read correctly.")
    ] = 0.95,
    completeness: Annotated[
        float, typer.Option("--completeness", help="Acceptance wanted of the true codeword.")
    ] = 0.95,
    as_json: Json = False,
) -> None:
    """The largest Hamming radius for a false-acceptance target, and the length that accepts often enough."""
    from fractions import Fraction

    from zktrace.certificates import presence as calculator
    from zktrace.certificates.intervals import lower_float

    target = Fraction(1, 1 << target_log2)
    radius = calculator.largest_radius(bits, target)
    facts: dict[str, object] = {"radius": radius}
    if radius is not None:
        facts |= {
            "false_accept_log2": calculator.false_accept_log2(bits, radius),
            "acceptance": lower_float(calculator.acceptance(bits, radius, accuracy)),
        }
    design = calculator.minimal_length(accuracy=accuracy, completeness=completeness, target=target)
    facts |= {"minimal_length": design.length, "minimal_length_radius": design.radius}
    _show(facts, as_json=as_json)


@app.command()
def rounds(
    queries_log2: Annotated[int, typer.Option("--queries-log2", min=0, help="Oracle queries 2^k.")] = 64,
    target_log2: Annotated[
        int, typer.Option("--target-log2", min=1, help="Knowledge error at most 2^-k.")
    ] = 129,
    count: Annotated[int, typer.Option("--rounds", min=1, help="Rounds whose error is printed.")] = 331,
    as_json: Json = False,
) -> None:
    """How many rounds a credential proof needs, and what a number of rounds is worth."""
    from fractions import Fraction

    from zktrace.certificates import rounds as calculator

    queries = 1 << queries_log2
    mapped = calculator.mapped_answers()
    _show(
        {
            "rounds_needed": calculator.rounds_needed(queries=queries, target=Fraction(1, 1 << target_log2)),
            "knowledge_error_log2": calculator.knowledge_error_log2(queries=queries, rounds=count),
            "knowledge_error_log2_16_bit_mapping": calculator.knowledge_error_log2(
                queries=queries, rounds=count, per_round=mapped
            ),
            "commitment_collision_log2": calculator.commitment_collision_log2(queries=max(2, queries)),
        },
        as_json=as_json,
    )


@app.command()
def credential(
    length: Annotated[int, typer.Option("--length", help="Samples m: the code's length.")] = 1280,
    secret: Annotated[int, typer.Option("--secret", help="Secret bits l: the code's dimension.")] = 640,
    weight: Annotated[int, typer.Option("--weight", help="Exact weight of the error.")] = 132,
    as_json: Json = False,
) -> None:
    """What it takes to find a witness of an exact-LPN key, and how many there are. Estimates, in bits (log2).

    Above the Gilbert-Varshamov distance a key has many witnesses, each as good as its holder's.
    """
    from zktrace.credentials.hardness import Instance

    found = Instance(length=length, secret=secret, weight=weight)
    _show(
        {
            "witnesses_log2": _tenth_up(found.log2_witnesses),
            "gilbert_varshamov_distance": found.distance,
            "prange_bits": -_tenth_up(-found.prange),
            "stern_bits": -_tenth_up(-found.stern.bits),
            "stern_errors": found.stern.errors,
            "stern_window": found.stern.window,
            "stern_bits_one_solution": -_tenth_up(-found.stern_one_solution.bits),
        },
        as_json=as_json,
    )


@app.command()
def length(
    colluders: Colluders = 2,
    recipients: Recipients = 10,
    level: Level = 1e-3,
    flip: Flip = 0.0,
    positions: Annotated[int, typer.Option("--length", min=1, help="For the planning index.")] = 512,
    as_json: Json = False,
) -> None:
    """Asymptotic planning: the length for a coalition size, and the coalition size for a length."""
    from zktrace.certificates import lengths

    _show(
        {
            "design_length": lengths.design_length(
                design=colluders, recipients=recipients, level=level, flip=flip
            ),
            "planning_index": lengths.planning_index(
                length=positions, recipients=recipients, level=level, flip=flip
            ),
        },
        as_json=as_json,
    )


@app.command()
def linear(
    lengths: Annotated[list[int] | None, typer.Option("--length", help="Positions; repeatable.")] = None,
    sizes: Annotated[
        list[int] | None, typer.Option("--colluders", help="Averaged copies; repeatable.")
    ] = None,
    recipients: Recipients = 1000,
    noise: Annotated[
        float, typer.Option("--noise", min=0, help="Noise over the amplitude of one copy.")
    ] = 0.1,
    level: Level = 1e-3,
    as_json: Json = False,
) -> None:
    """How many averaging colluders a fair code names, stage by stage. Estimates; thresholds are certified."""
    from zktrace.certificates.linear import linear_stages

    rows: list[dict[str, object]] = []
    lines = ["length  colluders  stage  unnamed  deviations  threshold  named"]
    for n in lengths or [2048, 8192]:
        for k in sizes or [8, 16, 32, 64, 128]:
            for each in linear_stages(length=n, colluders=k, recipients=recipients, noise=noise, level=level):
                rows.append({"length": n, "colluders": k, **asdict(each)})
                lines.append(
                    f"{n:>6}  {k:>9}  {each.stage:>5}  {each.unnamed:>7.1f}  {each.deviations:>10.2f}  "
                    f"{each.threshold:>9.2f}  {each.named:>5.0%}"
                )
    emit({"ok": True, "stages": rows}, as_json=as_json, text="\n".join(lines))


@app.command()
def identity(
    clients: Annotated[int, typer.Option("--clients", min=2, help="Stations N_c.")] = 10,
    bits: Annotated[int, typer.Option("--bits", min=1, help="Codeword bits n.")] = 128,
    omega: Annotated[int, typer.Option("--omega", min=5, help="BatchNorm scales.")] = 4800,
    baseline: Annotated[float, typer.Option("--baseline", help="Norm G of the pretrained scales.")] = 7.32,
    radius: Annotated[float, typer.Option("--radius", help="Wrong share of bits r, below 1/4.")] = 0.15,
    as_json: Json = False,
) -> None:
    """Load, survival diagnostic and attribution bounds of the public identity marks."""
    from zktrace.certificates import identity as calculator

    shape = {"clients": clients, "length": bits}
    _show(
        {
            "load": float(calculator.load(omega=omega, **shape)),
            "rank_reference": float(calculator.rank_reference(length=bits, omega=omega)),
            "snr": calculator.quadrature_snr(baseline=baseline, omega=omega, **shape),
            "predicted_bit_accuracy": calculator.quadrature_accuracy(baseline=baseline, omega=omega, **shape),
            "attribution_error_bound": calculator.attribution_error_bound(radius=radius, eta=0, **shape),
        },
        as_json=as_json,
    )


def _tenth_up(value: float) -> float:
    """An estimate to a tenth of a bit, rounded up."""
    from math import ceil

    return ceil(10 * value) / 10
