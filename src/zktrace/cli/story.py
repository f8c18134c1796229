"""The demo as a sequence of steps on real files; each case has an expectation that it is held against.

Stations' credentials and all training are derived from the seed; the operator's code key is drawn by the
operating system, as an operator's is.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.collusion import average
from zktrace.attacks.scales import quantise_all
from zktrace.attacks.training import finetune
from zktrace.certificates.identity import agreement
from zktrace.certificates.presence import largest_radius
from zktrace.cli.progress import training_progress
from zktrace.cli.report import write_training_report
from zktrace.cli.terminal import sign
from zktrace.credentials import Component, ModelBinding, prove, verify
from zktrace.dispatch.copies import CopySettings
from zktrace.dispatch.cost import Cost, copy_cost
from zktrace.dispatch.dispatching import dispatch
from zktrace.dispatch.making import make_release
from zktrace.dispatch.proxy import evaluation_samples
from zktrace.dispatch.releases import reader_of
from zktrace.errors import Error, EvidenceRejected
from zktrace.federation.roster import experimental_key
from zktrace.federation.run import run
from zktrace.federation.spec import RunSpec, build_model, load_data
from zktrace.federation.workers import single_threaded, worker_engine
from zktrace.judge import judge
from zktrace.judge.judgement import STEPS
from zktrace.learning.presets import Preset, load_preset
from zktrace.learning.states import state_of
from zktrace.learning.training import pretrain
from zktrace.marking.weight import with_scales
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives.canonical import to_json
from zktrace.primitives.files import write_atomic
from zktrace.readouts.identity import IdentityCodebook
from zktrace.readouts.scales import gather, layer_sizes
from zktrace.registry.export import write_export
from zktrace.registry.log import Head
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Workspace
from zktrace.report.attribution import agreement_figure
from zktrace.report.case import case_html
from zktrace.report.case_scores import case_figure
from zktrace.report.demo import DemoCase, demo_html
from zktrace.report.html import Html
from zktrace.report.plots import Dot, Limit, dot_plot, steps_plot
from zktrace.report.svg import figure
from zktrace.report.tracing import report_of
from zktrace.report.words import copies_of
from zktrace.tracing import Case, Readout, trace

BUDGET: Final = Fraction(1, 1000)
RELEASE: Final = "r1"
SHARE: Final = 0.05  # a narrow network has room for little: a stronger mark than the default
PRESET: Final = "demo"
PRESENCE: Final = 2.0**-20  # chance that a model without the mark passes for one with it
_FINETUNING: Final = 30  # episodes of the attacker
_TRUNCATED: Final = 8  # bits
_DIGEST: Final = re.compile("([0-9a-f]{8})[0-9a-f]{32,}")  # the report has the whole of it
_ALLOWED: Final = 3.0  # points of accuracy that a copy may cost on average
_DISPUTE: Final = ("the model holds the codeword of this credential", "the speaker holds its secret key")

State = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was expected of a case, and what happened."""

    case: str
    expected: str
    happened: str
    ok: bool
    figure: Html
    page: str = ""  # file name of the case's report


class Story:
    """Ten stations, one operator, some leaks and a judge."""

    def __init__(
        self, folder: Path, *, seed: int, say: Callable[[str], None], preset: Preset | None = None
    ) -> None:
        self.folder, self.seed, self._say = folder, seed, say
        self.outcomes: list[Outcome] = []
        self._preset = preset or load_preset(PRESET)
        clients = self._preset.federation.clients
        self._names = [f"station{number:02d}" for number in range(clients)]
        self._keys = [experimental_key(seed, number) for number in range(clients)]
        bits = self._preset.marks.bits
        self._spec = RunSpec(
            preset=self._preset, seed=seed, words=tuple(key.public.codeword(bits) for key in self._keys)
        )

    @property
    def report(self) -> Path:
        """The page that leads to all others."""
        return self.folder / "report.html"

    def tell(self) -> None:
        """All of it, in order."""
        self._enrol()
        self._train()
        self._dispatch()
        self._leaks()
        self._framing()
        self._innocent()
        self._courtroom()
        self._dispute()
        write_export(self._workspace.registry, self.folder / "registry.json")
        write_atomic(self.report, self._page().encode())

    def _page(self) -> str:
        """The page that shows every case and leads to every report."""
        cases = [
            DemoCase(
                case=each.case,
                expected=each.expected,
                happened=each.happened,
                ok=each.ok,
                figure=each.figure,
                page=each.page,
            )
            for each in self.outcomes
        ]
        traced = [each for each in self.outcomes if each.page]
        evidence = {each.case: each.page.replace(".html", ".zkt.json") for each in traced}
        return demo_html(
            cases,
            head=self._workspace.registry.head().to_text(),
            reports={"the training run": "run/report.html"},
            evidence=evidence | {"the exported log": "registry.json"},
        )

    # ── before anything leaks ──────────────────────────────────────────────────────────────────────────

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace.create(
            self.folder / "workspace",
            title="demo federation (simulated)",
            carriers=("weight",),
            identity_bits=self._preset.marks.bits,
        )

    def _enrol(self) -> None:
        for name, key in zip(self._names, self._keys, strict=True):
            self._workspace.enrol(name, Request.make(key, self._workspace.offer))
        self._say(
            f"enrol      {len(self._names)} simulated GNSS stations, each with a post-quantum credential"
        )

    def _train(self) -> None:
        run_folder = self.folder / "run"
        with training_progress(self._preset) as progress, worker_engine(self._spec) as engine:
            result = run(self._spec, run_folder, engine, progress=progress)
        write_training_report(run_folder)
        marks = result["marks"]
        matrix = json.loads((run_folder / "agreement.json").read_bytes())["agreement"]
        self._say(
            f"train      {result['rounds']} rounds, {100 * result['accuracy']:.0f} % of queries right "
            "(simulated data, a narrow network)"
        )
        self._note(
            "identity marks in the shared model",
            expected="every station attributed to itself",
            happened=f"{marks['attribution']:.0%}, own codeword {marks['self_agreement']:.3f}, "
            f"others {marks['cross_talk']:.3f}",
            ok=marks["attribution"] == 1.0,
            figure=agreement_figure(matrix, self._names),
        )

    def _dispatch(self) -> None:
        shared = self.folder / "run" / "model.safetensors"
        before = shared.read_bytes()
        make_release(self._workspace, shared, carriers=("weight",), name=RELEASE)
        self._copies = [
            open_model(copy.path)
            for copy in dispatch(self._workspace, release=RELEASE, settings=CopySettings(share=SHARE))
        ]
        images, labels = evaluation_samples(self._spec)
        cost = copy_cost(
            open_model(shared),
            zip(self._names, self._copies, strict=True),
            images,
            labels,
            shape=self._preset.evaluation.shape,
            seed=self.seed,
        )
        self._say(
            f"dispatch   {len(self._copies)} copies, each with a secret row; cost {cost.mean:.2f} points"
        )
        self._note(
            "dispatch",
            expected=f"the shared model unchanged, copies within {_ALLOWED:g} points of it",
            happened=f"{'un' if shared.read_bytes() == before else ''}changed, "
            f"{cost.mean:+.2f} points lost on average, {cost.worst:+.2f} at worst",
            ok=shared.read_bytes() == before and cost.mean <= _ALLOWED,
            figure=_cost_figure(cost),
        )

    # ── leaks ──────────────────────────────────────────────────────────────────────────────────────────

    def _leaks(self) -> None:
        self._first = self._case("one leaked copy", self._copies[3], expected=(3,))
        self._case("fine-tuned and quantised copy", self._disguised(7), expected=(7,))
        self._case("two averaging colluders", average([self._copies[i] for i in (1, 8)]), expected=(1, 8))
        eight = (0, 1, 2, 4, 5, 6, 8, 9)
        self._case("eight averaging colluders", average([self._copies[i] for i in eight]), expected=eight)

    def _disguised(self, station: int) -> State:
        """Thirty episodes on the leaker's own samples, then eight bits a number."""
        dataset, plan = load_data(self._spec)
        images, labels = dataset.take(plan.shard(station))
        config = self._preset.episodes.at_round(
            self._preset.federation.rounds - 1, self._preset.federation.rounds
        )
        with single_threaded():
            trained = finetune(
                self._copies[station],
                images,
                labels,
                replace(config, episodes=_FINETUNING),
                np.random.default_rng([self.seed, station]),
            )
        return quantise_all(trained, bits=_TRUNCATED)

    def _framing(self) -> None:
        """Station 5 writes the public codeword of station 2 into its own copy."""
        framer, victim = 5, 2
        copy = self._copies[framer]
        book = self._book(copy)
        words = self._spec.codewords()
        signed = (2.0 * words[victim][:, None] - 1.0) * book.block(victim)
        short = 0.5 - signed @ gather(copy)
        gamma = gather(copy) + np.linalg.lstsq(signed, np.maximum(short, 0.0), rcond=None)[0]
        framed = with_scales(copy, gamma)
        found = agreement(book.extract(framed), words)[victim, victim]
        self._case(
            "framing: the victim's public codeword in another's copy",
            framed,
            expected=(framer,),
            remark=f"the victim's codeword is there ({found:.0%}) and proves nothing",
        )

    def _innocent(self) -> None:
        """A model of the same kind that was never anybody's copy."""
        other = RunSpec(preset=self._preset, seed=self.seed + 1, words=())
        dataset, plan = load_data(self._spec)
        images, labels = dataset.take(plan.split.train)
        with single_threaded():
            model = build_model(other, dataset.shape[0])
            pretrain(model, images, labels, self._preset.pretraining, np.random.default_rng(self.seed + 1))
        self._case("a model that was never dispatched", state_of(model), expected=())

    def _case(
        self, title: str, suspect: State, *, expected: Sequence[int], remark: str = ""
    ) -> tuple[Case, Path]:
        """Trace a suspect as the operator would, from a file; hold the verdict against what is expected."""
        number = sum(bool(each.page) for each in self.outcomes) + 1
        folder = self.folder / "cases"
        folder.mkdir(exist_ok=True)
        path = folder / f"suspect-{number}.safetensors"
        save_model(path, suspect)
        state = open_model(path)
        reader = reader_of(self._workspace, RELEASE, "weight")
        case = trace(
            self._workspace.registry,
            self._workspace.custody,
            suspect=model_digest(state),
            release=RELEASE,
            readouts=[Readout(carrier="weight", values=reader.read(state), reference=reader.reference)],
            budget=BUDGET,
            requests=self._workspace.request_of,
        )
        evidence = folder / f"case-{number}.zkt.json"
        write_atomic(evidence, case.evidence.to_bytes(), secret=True)
        page = folder / f"case-{number}.html"
        shown = report_of(
            case,
            self._workspace.registry.ledger(),
            suspect=path,
            evidence=evidence,
            note="Simulated stations and simulated GNSS interference.",
        )
        write_atomic(page, case_html(shown).encode(), secret=True)
        wanted = sorted(self._names[i] for i in expected)
        happened = f"certified: {copies_of(sorted(case.names))}" if case.names else "no evidence: nobody"
        self._note(
            title,
            expected=", ".join(wanted) or "nobody",
            happened=happened + (f"; {remark}" if remark else ""),
            ok=sorted(case.names) == wanted,
            figure=case_figure(shown),
            page=f"cases/{page.name}",
        )
        self._say(f"trace      {title}: {happened}")
        return case, path

    # ── before the judge ───────────────────────────────────────────────────────────────────────────────

    def _courtroom(self) -> None:
        case, suspect = self._first
        honest, state = case.evidence.to_bytes(), open_model(suspect)
        head = Head.from_text(case.evidence.head)
        steps = list(STEPS.values())

        def note(title: str, evidence: bytes, head: Head, suspect: ModelState, *, upheld: bool) -> None:
            said, failed = self._judged(evidence, head, suspect)
            self._note(
                f"judge: {title}",
                expected="upheld" if upheld else "rejected",
                happened=said,
                ok=upheld == (failed is None),
                figure=_steps_figure(steps, failed, title="Steps of the judge"),
            )

        note("honest evidence", honest, head, state, upheld=True)
        victim = self._names[2]
        for title, change in _FORGERIES.items():
            facts = json.loads(honest)
            change(facts, victim)
            note(title, to_json(facts), head, state, upheld=False)
        note("another log's head", honest, Head(size=head.size, root=bytes(32)), state, upheld=False)
        note("another suspect", honest, head, self._copies[2], upheld=False)

    @staticmethod
    def _judged(evidence: bytes, head: Head, suspect: ModelState) -> tuple[str, int | None]:
        """What the judge says, and the step that failed."""
        try:
            found = judge(evidence, head=head, suspect=suspect)
        except Error as error:
            return f"rejected, {error}", error.step if isinstance(error, EvidenceRejected) else 1
        return f"upheld, {', '.join(found.named)}", None

    def _dispute(self) -> None:
        """The accused and an impostor say that they hold station 3's credential, of the leaked model."""
        suspect = open_model(self._first[1])
        bits = self._preset.marks.bits
        word = self._book(suspect).extract(suspect)[3]
        component = Component(bits=bits, packed=np.packbits(word).tobytes())
        binding = ModelBinding(state_digest=model_digest(suspect), component=component)
        public = self._keys[3].public
        radius = largest_radius(bits, PRESENCE) or 0
        for title, key, holds in (
            ("credential dispute: the holder", self._keys[3], True),
            ("credential dispute: an impostor", self._keys[4], False),
        ):
            try:
                verify(public, binding, prove(key, binding), radius=radius)
                said, accepted = "accepted: it holds the credential, which says nothing of who leaked", True
            except Error as error:
                said, accepted = f"refused, {error}", False
            self._note(
                title,
                expected="accepted" if holds else "refused",
                happened=said,
                ok=accepted == holds,
                figure=_steps_figure(_DISPUTE, None if accepted else 2, title="Steps of the verifier"),
            )

    # ── bookkeeping ────────────────────────────────────────────────────────────────────────────────────

    def _book(self, arrays: State) -> IdentityCodebook:
        return self._spec.codebook(layer_sizes(arrays))

    def _note(
        self, case: str, *, expected: str, happened: str, ok: bool, figure: Html, page: str = ""
    ) -> None:
        self.outcomes.append(
            Outcome(case=case, expected=expected, happened=happened, ok=ok, figure=figure, page=page)
        )

    def table(self) -> str:
        """Expected and happened, line by line."""
        lines = []
        for each in self.outcomes:
            lines.append(f"{sign(each.ok):<2} {each.case}")
            lines.append(f"     expected: {each.expected}")
            lines.append("     happened: " + _DIGEST.sub(r"\1...", each.happened))
        return "\n".join(lines)


def _steps_figure(steps: Sequence[str], failed: int | None, *, title: str) -> Html:
    """How far an examination came."""
    said = "All steps passed." if failed is None else f"It ended at step {failed}, {steps[failed - 1]}."
    return figure(steps_plot(steps, failed=failed, title=title, description=said), caption=said)


def _cost_figure(cost: Cost) -> Html:
    """What each copy lost, station by station."""
    lost = {name: 100.0 * (cost.shared.mean - each.mean) for name, each in cost.copies.items()}
    drawing = dot_plot(
        [Dot(label=name, value=value) for name, value in lost.items()],
        title="Accuracy that a copy loses",
        description=f"{len(lost)} copies, {cost.mean:+.2f} points on average.",
        x_label="percentage points",
        limits=[Limit(label="allowed on average", value=_ALLOWED)],
    )
    return figure(drawing, caption="Shared model and copies answer the same few-shot episodes.")


def _rename(facts: dict[str, Any], victim: str) -> None:
    """The victim's name where the accused's was."""
    accused = facts["accused"][0]["station"]
    facts["accused"][0]["station"] = victim
    for stage in facts["findings"]["stages"]:
        for each in stage["named"]:
            each["station"] = victim if each["station"] == accused else each["station"]


def _other_row(facts: dict[str, Any], victim: str) -> None:
    """One bit of the seed of the accused's row."""
    opening = facts["accused"][0]["rows"][0]["opening"]
    opening["seed"] = f"{int(opening['seed'][:2], 16) ^ 1:02x}{opening['seed'][2:]}"


def _other_readout(facts: dict[str, Any], victim: str) -> None:
    """The signs of the first readout values."""
    carrier = facts["carriers"][0]
    carrier["readout"] = f"{int(carrier['readout'][:2], 16) ^ 0x80:02x}{carrier['readout'][2:]}"


def _other_threshold(facts: dict[str, Any], victim: str) -> None:
    """A score of the forger's liking."""
    facts["findings"]["stages"][0]["named"][0]["score"] = "1000000/1"


_FORGERIES: Final[dict[str, Callable[[dict[str, Any], str], None]]] = {
    "the victim's name instead of the accused's": _rename,
    "a bit of the row's seed changed": _other_row,
    "a value of the readout changed": _other_readout,
    "a larger score claimed": _other_threshold,
}
