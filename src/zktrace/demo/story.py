"""The demo as a sequence of steps on real files; each case has an expectation that it is held against.

Stations' credentials and all training are derived from the seed; the operator's code key is drawn by the
operating system, as an operator's is.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from zktrace.attacks.collusion import collude
from zktrace.attacks.scales import quantise_all
from zktrace.attacks.training import finetune
from zktrace.carriers import CARRIERS
from zktrace.certificates.identity import agreement
from zktrace.credentials import Component
from zktrace.demo.courtroom import disputes, hearings
from zktrace.demo.folder import EXPORT, RUN, WORKSPACE, clear
from zktrace.demo.outcomes import Agreement, Losses, Outcome, Told, Traced
from zktrace.federation.guarded import guarded_handout
from zktrace.federation.handout import Handout
from zktrace.federation.roster import experimental_key
from zktrace.federation.run import Progress, run
from zktrace.federation.spec import RunSpec, build_model
from zktrace.federation.workers import worker_engine
from zktrace.front.workspace import Workspace
from zktrace.guarding.guard import NAME as GUARDED
from zktrace.learning.arrays import Arrays, State
from zktrace.learning.cost import copy_cost
from zktrace.learning.presets import Preset, load_preset
from zktrace.learning.states import state_of
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import pretrain
from zktrace.marking.weight import with_scales
from zktrace.models import model_digest, open_model, save_model
from zktrace.primitives.files import write_atomic
from zktrace.primitives.text import copies_of
from zktrace.readouts.identity import IdentityCodebook
from zktrace.readouts.scales import gather, layer_sizes
from zktrace.registry.export import write_export
from zktrace.registry.requests import Request

BUDGET: Final = Fraction(1, 1000)
PRESET: Final = "demo"
_FINETUNING: Final = 30  # episodes of the attacker
_TRUNCATED: Final = 8  # bits
_EARLY, _LISTENER = 2, 6  # the round whose broadcast leaks, and the station that it was sent to
_RELEASE: Final = "r1"  # of the trained model; that of the guard stands for the rounds
_ALLOWED: Final = 0.5  # points of accuracy that a copy may cost on average

Watch = Callable[[Preset], AbstractContextManager[Progress]]


def _unseen(preset: Preset) -> AbstractContextManager[Progress]:
    return nullcontext(lambda _: None)


class Story:
    """Ten stations, one operator, some leaks and a judge."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        say: Callable[[str], None],
        preset: Preset | None = None,
        watch: Watch = _unseen,
    ) -> None:
        self._folder, self._seed, self._say, self._watch = folder, seed, say, watch
        self._outcomes: list[Outcome] = []
        self._preset = preset or load_preset(PRESET)
        clients = self._preset.federation.clients
        self._names = [f"station{number:02d}" for number in range(clients)]
        self._keys = [experimental_key(seed, number) for number in range(clients)]
        bits = self._preset.marks.bits
        self._spec = RunSpec(
            preset=self._preset, seed=seed, words=tuple(key.public.codeword(bits) for key in self._keys)
        )

    def tell(self) -> Told:
        """All of it, in order."""
        clear(self._folder)
        self._enrol()
        self._train()
        self._dispatch()
        first = self._leaks()
        self._framing()
        self._innocent()
        self._before_the_judge(first)
        registry = self._workspace.registry
        head = write_export(registry, self._folder / EXPORT)
        return Told(
            folder=self._folder,
            outcomes=tuple(self._outcomes),
            ledger=registry.ledger(),
            head=head.to_text(),
        )

    # ── before anything leaks ──────────────────────────────────────────────────────────────────────────

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace.create(
            self._folder / WORKSPACE,
            title="demo federation (simulated)",
            carriers=[next(iter(CARRIERS))],
            identity_bits=self._preset.marks.bits,
        )

    def _enrol(self) -> None:
        for name, key in zip(self._names, self._keys, strict=True):
            self._workspace.enrol(name, Request.make(key, self._workspace.offer))
        self._say(
            f"enrol      {len(self._names)} simulated GNSS stations, each with a post-quantum credential"
        )

    def _train(self) -> None:
        run_folder = self._folder / RUN
        with (
            self._watch(self._preset) as progress,
            worker_engine(self._spec, handout=self._handout()) as engine,
        ):
            result = run(self._spec, run_folder, engine, progress=progress)
        marks = result["marks"]
        matrix = json.loads((run_folder / "agreement.json").read_bytes())["agreement"]
        self._say(
            f"train      {result['rounds']} rounds, {100 * result['accuracy']:.0f} % of queries right "
            "(simulated data, a narrow network)"
        )
        self._outcomes.append(
            Outcome(
                case="identity marks in the shared model",
                expected="every station attributed to itself",
                happened=f"{marks['attribution']:.0%}, own codeword {marks['self_agreement']:.3f}, "
                f"others {marks['cross_talk']:.3f}",
                ok=marks["attribution"] == 1.0,
                shown=Agreement(matrix=matrix, stations=tuple(self._names)),
            )
        )

    def _handout(self) -> Handout:
        """Every broadcast is the station's own; one station keeps those it gets."""
        guard, self._broadcasts = guarded_handout(self._workspace, self._names), list[Arrays]()

        def outgoing(station: int, state: State) -> State:
            made = guard.outgoing(station, state)
            if station == _LISTENER:
                self._broadcasts.append(made)
            return made

        return replace(guard, outgoing=outgoing)

    def _dispatch(self) -> None:
        shared = self._folder / RUN / "model.safetensors"
        before = shared.read_bytes()
        release = self._workspace.release(shared, name=_RELEASE)
        copies = self._workspace.dispatch_all(release=release)
        self._copies = [open_model(copy.path) for copy in copies]
        images, labels = self._spec.source.samples("test")
        cost = copy_cost(
            open_model(shared),
            zip(self._names, self._copies, strict=True),
            images,
            labels,
            shape=self._preset.evaluation.shape,
            seed=self._seed,
        )
        self._say(
            f"dispatch   {len(self._copies)} copies, each with a secret row; cost {cost.mean:.2f} points"
        )
        lost = {name: 100.0 * (cost.shared.mean - each.mean) for name, each in cost.copies.items()}
        self._outcomes.append(
            Outcome(
                case="dispatch",
                expected=f"the shared model unchanged, copies within {_ALLOWED:g} points of it",
                happened=f"{'un' if shared.read_bytes() == before else ''}changed, "
                f"{cost.mean:+.2f} points lost on average, {cost.worst:+.2f} at worst",
                ok=shared.read_bytes() == before and cost.mean <= _ALLOWED,
                shown=Losses(by_station=lost, mean=cost.mean, allowed=_ALLOWED),
            )
        )

    # ── leaks ──────────────────────────────────────────────────────────────────────────────────────────

    def _leaks(self) -> Traced:
        self._case(
            f"the broadcast of round {_EARLY}, long before the model was done",
            self._broadcasts[_EARLY - 1],
            expected=(_LISTENER,),
            release=GUARDED,
        )
        first = self._case("one leaked copy", self._copies[3], expected=(3,))
        self._case("fine-tuned and quantised copy", self._disguised(7), expected=(7,))
        self._case(
            "two averaging colluders", dict(collude([self._copies[i] for i in (1, 8)])), expected=(1, 8)
        )
        eight = (0, 1, 2, 4, 5, 6, 8, 9)
        self._case(
            "eight averaging colluders", dict(collude([self._copies[i] for i in eight])), expected=eight
        )
        return first

    def _disguised(self, station: int) -> Arrays:
        """Thirty episodes on the leaker's own samples, then eight bits a number."""
        dataset, plan = self._spec.source.load()
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
                np.random.default_rng([self._seed, station]),
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
        other = RunSpec(preset=self._preset, seed=self._seed + 1, words=())
        dataset, plan = self._spec.source.load()
        images, labels = dataset.take(plan.split.train)
        with single_threaded():
            model = build_model(other, dataset.shape[0])
            pretrain(model, images, labels, self._preset.pretraining, np.random.default_rng(self._seed + 1))
        self._case("a model that was never dispatched", state_of(model), expected=())

    def _case(
        self,
        title: str,
        suspect: Arrays,
        *,
        expected: Sequence[int],
        remark: str = "",
        release: str = _RELEASE,
    ) -> Traced:
        """Trace a suspect as the operator would, from a file; hold the verdict against what is expected."""
        number = sum(isinstance(each.shown, Traced) for each in self._outcomes) + 1
        folder = self._folder / "cases"
        folder.mkdir(exist_ok=True)
        path = folder / f"suspect-{number}.safetensors"
        save_model(path, suspect)
        found = self._workspace.trace(path, budget=BUDGET, release=release)
        evidence = folder / f"case-{number}.zkt.json"
        write_atomic(evidence, found.evidence.to_bytes(), secret=True)
        wanted = sorted(self._names[i] for i in expected)
        happened = f"certified: {copies_of(sorted(found.named))}" if found.named else "no evidence: nobody"
        traced = Traced(case=found.case, suspect=path, evidence=evidence)
        self._outcomes.append(
            Outcome(
                case=title,
                expected=", ".join(wanted) or "nobody",
                happened=happened + (f"; {remark}" if remark else ""),
                ok=sorted(found.named) == wanted,
                shown=traced,
            )
        )
        self._say(f"trace      {title}: {happened}")
        return traced

    def _before_the_judge(self, first: Traced) -> None:
        """The first leak's evidence, then the accused and an impostor who say they hold its credential."""
        suspect, accused, victim = open_model(first.suspect), 3, 2
        self._outcomes += hearings(
            first.case.evidence.to_bytes(),
            suspect=suspect,
            shared=open_model(self._folder / RUN / "model.safetensors"),
            other=self._copies[victim],
            victim=self._names[victim],
        )
        word = self._book(suspect).extract(suspect)[accused]
        component = Component(bits=self._preset.marks.bits, packed=np.packbits(word).tobytes())
        self._outcomes += disputes(
            model_digest(suspect), component, holder=self._keys[accused], impostor=self._keys[accused + 1]
        )

    def _book(self, arrays: Arrays) -> IdentityCodebook:
        return self._spec.codebook(layer_sizes(arrays))
