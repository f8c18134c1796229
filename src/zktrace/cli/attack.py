"""`zktrace attack`: what a leaker may do to copies, as files in and a file out."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zktrace.cli.output import Json, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.models import ModelState

app = typer.Typer(
    help="What a leaker may do to a copy before it is found. Research only: no key is read.",
    no_args_is_help=True,
)

Source = Annotated[Path, typer.Argument(metavar="IN", help="The copy: safetensors, npz or torch zip.")]
Out = Annotated[Path, typer.Option("--out", help="The attacked model, as safetensors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")]


@app.command("quantise")
def quantise(
    source: Source,
    out: Out,
    bits: Annotated[int, typer.Option("--bits", min=1, max=32, help="2^bits even steps an array.")] = 4,
    everything: Annotated[
        bool, typer.Option("--all", help="All trained arrays, not the BatchNorm scales alone.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Round the BatchNorm scales, or every trained array, to few bits."""
    from zktrace.attacks.scales import quantise_all, quantise_scales

    state = _open(source)
    done = quantise_all(state, bits=bits) if everything else quantise_scales(state, bits=bits)
    _save(out, done, "quantise", [source], force=force, as_json=as_json)


@app.command("prune")
def prune(
    source: Source,
    out: Out,
    share: Annotated[float, typer.Option("--share", help="Of the scales, the smallest first.")] = 0.5,
    structured: Annotated[bool, typer.Option("--structured", help="Whole channels.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Set the smallest BatchNorm scales to zero."""
    from zktrace.attacks.scales import prune_scales

    done = prune_scales(_open(source), share=share, structured=structured)
    _save(out, done, "prune", [source], force=force, as_json=as_json)


@app.command("noise")
def noise(
    source: Source,
    out: Out,
    sigma: Annotated[float, typer.Option("--sigma", help="In standard deviations of all scales.")] = 1.0,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add Gaussian noise to the BatchNorm scales."""
    import numpy as np

    from zktrace.attacks.scales import noise_scales

    done = noise_scales(_open(source), sigma=sigma, rng=np.random.default_rng(seed))
    _save(out, done, "noise", [source], force=force, as_json=as_json)


@app.command("reset")
def reset(
    source: Source,
    out: Out,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", help="stem, layer1 ... layer4; repeat it. Default: all of them."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Set the BatchNorm scales of stages to one, as before any training."""
    from zktrace.attacks.scales import STAGES, reset_scales

    done = reset_scales(_open(source), stages=stage or STAGES)
    _save(out, done, "reset", [source], force=force, as_json=as_json)


@app.command("average")
def average(
    sources: Annotated[list[Path], typer.Argument(metavar="IN...", help="Two copies or more.")],
    out: Out,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Average the copies of several leakers."""
    from zktrace.attacks.collusion import average as average_states

    if len(sources) < 2:
        raise InputError("a coalition has at least two copies")
    done = average_states([_open(source) for source in sources])
    _save(out, done, "average", sources, force=force, as_json=as_json)


@app.command("finetune")
def finetune(
    source: Source,
    out: Out,
    preset: Annotated[
        str, typer.Option("--preset", help="Preset or TOML: the leaker's data and shape of episodes.")
    ] = "smoke",
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="How many.")] = 50,
    cifar10: Annotated[
        Path | None, typer.Option("--cifar10", help="Folder of CIFAR-10 in its binary layout.")
    ] = None,
    seed: Seed = 42,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train the copy on, on a run's training data, without any term for marks."""
    from dataclasses import replace

    import numpy as np

    from zktrace.attacks.training import finetune as finetune_state
    from zktrace.cli.progress import named_progress
    from zktrace.federation.spec import RunSpec, load_data
    from zktrace.federation.workers import single_threaded
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset

    state = _open(source)
    spec = RunSpec(preset=load_preset(preset), seed=seed, words=(), cifar10=cifar10, cache=default_folder())
    dataset, plan = load_data(spec)
    images, labels = dataset.take(plan.split.train)
    config = replace(spec.preset.episodes, episodes=episodes)
    with single_threaded(), named_progress("episodes", episodes) as progress:
        done = finetune_state(
            state,
            images,
            labels,
            config,
            np.random.default_rng([seed, 9]),
            progress=lambda report: progress(f"episode {report.episode}", 1.0),
        )
    _save(out, done, "finetune", [source], force=force, as_json=as_json)


def _open(path: Path) -> "ModelState":
    from zktrace.models import open_model

    return open_model(path)


def _save(
    out: Path, state: Mapping[str, Any], attack: str, sources: list[Path], *, force: bool, as_json: bool
) -> None:
    from zktrace.models import model_digest, open_model, save_model

    save_model(out, state, metadata={"format": "pt"}, replace=force)
    digest = model_digest(open_model(out)).hex()
    facts = {
        "ok": True,
        "attack": attack,
        "in": [str(path) for path in sources],
        "out": str(out),
        "digest": digest,
    }
    emit(facts, as_json=as_json, text=f"{out}  {digest}")
