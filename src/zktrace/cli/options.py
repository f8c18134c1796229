"""Options that several commands have, each declared once, and what they stand for."""

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.carriers import CARRIERS
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.carriers import Profile
    from zktrace.federation.spec import RunSpec
    from zktrace.front.workspace import Workspace

MARKED: Final = tuple(each.name for each in CARRIERS.values() if each.trained)  # what `--mark` sets
_DIGITS: Final = 9  # of a length
_MARK: Final = re.compile(r"([a-z]+)\.([a-z_]+)=([0-9.eE+-]{1,32})")

Json = Annotated[bool, typer.Option("--json", help="Print one machine-readable JSON object.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")]
RunSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run that made the data's split.")]
Seeds = Annotated[list[int], typer.Option("--seed", min=0, help="Repeat it for more runs.")]
Cifar10 = Annotated[Path | None, typer.Option("--cifar10", help="Folder of CIFAR-10 in its binary layout.")]
PresetName = Annotated[
    str,
    typer.Option("--preset", help="smoke, study, half, desk, paper, or a TOML file based on one of them."),
]
RunPreset = Annotated[str, typer.Option("--preset", help="The preset of that run, or a TOML file.")]
ProfileChoice = Annotated[str, typer.Option("--profile", help="informed or paper.")]
Datasets = Annotated[
    list[str],
    typer.Option("--dataset", help="gnss (simulated), cifar10, or the preset's recordings; repeat it."),
]
RowsFile = Annotated[Path, typer.Option("--out", help="File of rows (JSON lines) that the study appends to.")]
WorkFolder = Annotated[Path, typer.Option("--work", help="Folder for models and checkpoints of the runs.")]
SharedModel = Annotated[Path, typer.Argument(help="The shared model: safetensors, npz or torch zip.")]
ReleaseName = Annotated[str | None, typer.Option("--release", help="Default: the latest.")]
StationName = Annotated[str, typer.Argument(help="Name of the station.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Marks of the paper's kind: read scales with their layer's mean.")
]
AllowWeak = Annotated[
    bool,
    typer.Option(
        "--allow-weak-params",
        help="Take keys of the paper's set and of the test-* sets too, which can be forged.",
    ),
]
WorkspaceFolder = Annotated[
    Path | None,
    typer.Option("--workspace", help="The operator's folder (default: found upwards from here)."),
]
RosterWorkspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", help="Take keys, order, names and codeword length of the stations enrolled there."
    ),
]
RosterKeys = Annotated[
    list[Path] | None,
    typer.Option("--public", help="A station's public key; repeat it, in the order of the roster."),
]
Marks = Annotated[
    list[str] | None,
    typer.Option(
        "--mark",
        metavar="CARRIER.SETTING=NUMBER",
        help="Informed feature and output marks, as output.margin=2; repeat it (docs/carriers.md).",
    ),
]


def workspace_at(folder: Path | None) -> "Workspace":
    """The workspace that `--workspace` names, or the one around the current folder."""
    from zktrace.front.workspace import Workspace

    return Workspace.find() if folder is None else Workspace.open(folder)


def release_named(home: "Workspace", name: str | None) -> str:
    """The name of a release that is there: the latest, unless `--release` names another."""
    ledger = home.registry.ledger()
    if name is not None:
        return ledger.release(name).name
    if not ledger.release_names:
        raise InputError("there is no release yet")
    return ledger.release_names[-1]


def budget_option(text: str) -> Fraction:
    """A probability as people write it (0.01, 1e-3, 1/100), as the exact number it says."""
    from zktrace.primitives.exact import exact_budget

    return exact_budget(text)


def run_spec(preset: str, cifar10: Path | None, seed: int) -> "RunSpec":
    """The run whose data `--preset`, `--cifar10` and `--seed` name; nobody trains in it."""
    from zktrace.federation.spec import RunSpec
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset

    return RunSpec(preset=load_preset(preset), seed=seed, words=(), cifar10=cifar10, cache=default_folder())


def study_spec(preset: str, dataset: str, seed: int, cifar10: Path | None) -> "RunSpec":
    """The run of a study that a shared model comes from."""
    from dataclasses import replace

    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.studies.federation import FederationTrial

    chosen = load_preset(preset)
    run = FederationTrial(preset=replace(chosen, data=replace(chosen.data, dataset=dataset)), seed=seed)
    return run.spec(cifar10=cifar10, cache=default_folder())


def profile_option(text: str) -> "Profile":
    """A profile that is known."""
    from zktrace.carriers import PROFILES

    for profile in PROFILES:
        if text == profile:
            return profile
    raise InputError(f"profile {text!r} is not known; it is one of {', '.join(PROFILES)}")


def code_lengths(given: "list[str] | None", carriers: "tuple[str, ...]") -> dict[str, int]:
    """What `--length` says: of the one carrier, or of each that is named."""
    found: dict[str, int] = {}
    for each in given or ():
        name, _, number = each.rpartition("=")
        if not number.isascii() or not number.isdigit() or len(number) > _DIGITS:
            raise InputError(f"--length {each}: a number of positions, or CARRIER=NUMBER")
        for carrier in (name,) if name else carriers:
            found[carrier] = int(number)
    return found


def mark_settings(given: list[str] | None) -> dict[str, dict[str, float]]:
    """Settings by carrier that `--mark` gives, whole numbers as such."""
    found: dict[str, dict[str, float]] = {carrier: {} for carrier in MARKED}
    for each in given or ():
        form = _MARK.fullmatch(each)
        if form is None or form[1] not in found:
            raise InputError(f"--mark {each!r} must be like output.margin=2, for {' or '.join(MARKED)}")
        carrier, name, number = form.groups()
        if name in found[carrier]:
            raise InputError(f"--mark gives {carrier}.{name} twice")
        try:
            found[carrier][name] = int(number) if number.isdigit() else float(number)
        except ValueError as error:
            raise InputError(f"--mark {each!r}: {number} is no number") from error
    return found
