"""`zktrace attack`: what a leaker may do to copies, as files in and a file out."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.attacked import Stored, leaked, opened, saved
from zktrace.cli.options import Cifar10, Force, Json, Seed, run_spec
from zktrace.cli.output import check_free
from zktrace.errors import InputError

app = typer.Typer(
    help="What a leaker may do to a copy before it is found. Research only: no key is read.",
    no_args_is_help=True,
)

Source = Annotated[Path, typer.Argument(metavar="IN", help="The copy: safetensors, npz or torch zip.")]
Out = Annotated[Path, typer.Option("--out", help="The attacked model, as safetensors.")]


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

    state = opened(source)
    done = quantise_all(state, bits=bits) if everything else quantise_scales(state, bits=bits)
    saved(out, done, "quantise", [source], force=force, as_json=as_json)


@app.command("prune")
def prune(
    source: Source,
    out: Out,
    share: Annotated[
        float, typer.Option("--share", help="Part of the scales that is set to zero, the smallest first.")
    ] = 0.5,
    structured: Annotated[bool, typer.Option("--structured", help="Whole channels.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Set the smallest BatchNorm scales to zero."""
    from zktrace.attacks.scales import prune_scales

    done = prune_scales(opened(source), share=share, structured=structured)
    saved(out, done, "prune", [source], force=force, as_json=as_json)


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

    done = noise_scales(opened(source), sigma=sigma, rng=np.random.default_rng(seed))
    saved(out, done, "noise", [source], force=force, as_json=as_json)


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

    done = reset_scales(opened(source), stages=stage or STAGES)
    saved(out, done, "reset", [source], force=force, as_json=as_json)


@app.command("collude")
def collude(
    sources: Annotated[list[Path], typer.Argument(metavar="IN...", help="Two copies or more.")],
    out: Out,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="mean, random, median, minimum, maximum, midrange, modified-negative, random-negative, "
            "farthest or weighted (docs/coalitions.md).",
        ),
    ] = "mean",
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="Of `weighted`: one a copy, as 3,1,1. Default: a mixture is drawn."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put the copies of several leakers together, weight by weight."""
    import numpy as np

    from zktrace.attacks.collusion import collude as put_together

    copies = [opened(source) for source in sources]
    stored = [Stored(each) for each in copies]
    coalition = put_together(
        stored,
        strategy,
        rng=np.random.default_rng(seed),
        weights=None if weights is None else _numbers(weights),
        bfloat16=stored[0].halves,
    )
    saved(out, leaked(copies[0], coalition.pieces), "collude", sources, force=force, as_json=as_json)


@app.command("finetune")
def finetune(
    source: Source,
    out: Out,
    preset: Annotated[
        str, typer.Option("--preset", help="Preset or TOML: the leaker's data and shape of episodes.")
    ] = "smoke",
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="How many.")] = 50,
    cifar10: Cifar10 = None,
    seed: Seed = 42,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train the copy on, on a run's training data, without any term for marks."""
    from dataclasses import replace

    import numpy as np

    from zktrace.attacks.training import finetune as finetune_state
    from zktrace.cli.progress import named_progress
    from zktrace.learning.threads import single_threaded

    state = opened(source)
    spec = run_spec(preset, cifar10, seed)
    images, labels = spec.source.samples("train")
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
    saved(out, done, "finetune", [source], force=force, as_json=as_json)


@app.command("rescale")
def rescale(
    source: Source,
    out: Out,
    spread: Annotated[float, typer.Option("--spread", help="Deviation of the factors' logarithms.")] = 1.0,
    norms: Annotated[
        bool, typer.Option("--norms", help="Inside BatchNorm layers too: filters, statistics, signs.")
    ] = False,
    features: Annotated[bool, typer.Option("--features", help="Features too, which changes them.")] = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Scale channels where they are written, and back where they are read: outputs stay, scales do not."""
    import numpy as np

    from zktrace.attacks.rewrite import rescale as rescale_state

    rng = np.random.default_rng(seed)
    done = rescale_state(opened(source), rng, spread=spread, features=features, norms=norms)
    saved(out, done, "rescale", [source], force=force, as_json=as_json)


@app.command("permute")
def permute(
    source: Source,
    out: Out,
    features: Annotated[
        bool, typer.Option("--features", help="Features too, which puts them in another order.")
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put channels in another order, consistently: outputs stay."""
    import numpy as np

    from zktrace.attacks.rewrite import permute as permute_state

    done = permute_state(opened(source), np.random.default_rng(seed), features=features)
    saved(out, done, "permute", [source], force=force, as_json=as_json)


@app.command("fold")
def fold(source: Source, out: Out, force: Force = False, as_json: Json = False) -> None:
    """Write BatchNorm layers into the convolutions before them, as exporters do: outputs stay, scales go."""
    from zktrace.attacks.fold import fold as fold_state

    saved(out, fold_state(opened(source)), "fold", [source], force=force, as_json=as_json)


@app.command("rewrite")
def rewrite(
    source: Source,
    out: Out,
    graph: Annotated[
        str, typer.Option("--graph", help="Names of its tensors: language or vision, as this package's.")
    ] = "language",
    how: Annotated[
        list[str] | None,
        typer.Option(
            "--how", help="permuted, rescaled, rotated; repeat it. Default: all, one after the other."
        ),
    ] = None,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Of attention in a block.")] = 4,
    spread: Annotated[float, typer.Option("--spread", help="Deviation of the factors' logarithms.")] = 1.0,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Permute, rescale and rotate a transformer with RMSNorm: outputs stay, no weight does."""
    import numpy as np

    from zktrace.attacks.transformers import disguise

    rng = np.random.default_rng(seed)
    done = disguise(opened(source), graph, rng, how=how, heads=heads, spread=spread)
    saved(out, done, "rewrite", [source], force=force, as_json=as_json)


@app.command("isometry")
def isometry(source: Source, out: Out, seed: Seed = 0, force: Force = False, as_json: Json = False) -> None:
    """Rotate the features at random by a last layer: distances stay, coordinates do not."""
    import numpy as np

    from zktrace.attacks.isometry import isometry as rotate

    done = rotate(opened(source), np.random.default_rng(seed))
    saved(out, done, "isometry", [source], force=force, as_json=as_json)


@app.command("distill")
def distill(
    sources: Annotated[
        list[Path], typer.Argument(metavar="IN...", help="The teacher's copy; several teach their mean.")
    ],
    out: Out,
    data: Annotated[str, typer.Option("--data", help="Preset or TOML: the leaker's images.")] = "smoke",
    objective: Annotated[
        str,
        typer.Option("--objective", help="features, logits, distances, top1, or labels (no teacher)."),
    ] = "features",
    depth: Annotated[int, typer.Option("--depth", help="Layers of the student: 18 or 34.")] = 18,
    width: Annotated[
        int, typer.Option("--width", min=0, help="Channels of the student's first stage; 0: the teacher's.")
    ] = 0,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the leaker's images.")] = 20,
    batch_size: Annotated[int, typer.Option("--batch-size", min=2, help="Images a step.")] = 128,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Step size of Adam, annealed to 0.")
    ] = 1e-3,
    augment: Annotated[
        bool, typer.Option(help="Show images shifted and mirrored, in another way in every epoch.")
    ] = True,
    head: Annotated[
        bool, typer.Option("--head", help="Keep the head of logits, top1 or labels: a classifier.")
    ] = False,
    samples: Annotated[int, typer.Option("--samples", min=0, help="The leaker's images; 0: all.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Saved after every epoch; taken up if it exists.")
    ] = None,
    cifar10: Cifar10 = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the data.")] = 42,
    student_seed: Annotated[int, typer.Option("--student-seed", min=0, help="Of the student.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a fresh student on a copy's outputs, on a run's training data less the server's own samples."""
    import numpy as np

    from zktrace.attacks.distill import DistillConfig
    from zktrace.attacks.distill import distill as train_student
    from zktrace.cli.progress import named_progress
    from zktrace.learning.threads import single_threaded
    from zktrace.studies.leaker import leakers_samples

    config = DistillConfig(
        objective=objective,
        depth=depth,
        width=width,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        augment=augment,
        head=head,
    )
    check_free(out, force=force)
    teachers = [opened(source) for source in sources]
    spec = run_spec(data, cifar10, seed)
    images, labels = leakers_samples(spec, samples=samples, rng=np.random.default_rng([student_seed, 10]))
    with single_threaded(), named_progress("epochs", epochs) as progress:
        done = train_student(
            teachers,
            images,
            labels,
            config,
            np.random.default_rng([student_seed, 11]),
            checkpoint=checkpoint,
            resume=True,
            progress=lambda report: progress(f"epoch {report.epoch}", 1.0),
        )
    saved(out, done, "distill", sources, force=force, as_json=as_json)


def _numbers(text: str) -> list[float]:
    try:
        return [float(each) for each in text.split(",")]
    except ValueError as error:
        raise InputError(f"--weights {text!r} must be numbers, as 3,1,1") from error
