"""How an insider of a study writes and reads: the package's own writers, on what the insider knows.

A `JobPen` has no release, no ledger, no code and no shared model. Whatever state it writes to takes the place
of the shared model: marks are added to it, and features and scores are aimed at beside its own.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from zktrace.attacks.insider import Effort, Own, Values
from zktrace.carriers import Profile, carrier
from zktrace.derivation.streams import Stream
from zktrace.marking.last_stage_writer import mark_config
from zktrace.marking.settings import CopySettings, usual_strength
from zktrace.marking.writer import Job, copy_of, writers_of
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.reader import Terms, reader_of, survey_of
from zktrace.readouts.samples import Pool
from zktrace.releases import OpenRelease

_SEED: Final = 32  # bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class JobPen:
    """Directions and probes, images to train on, and how copies are made."""

    terms: Mapping[str, Terms]  # by carrier
    pool: Pool  # the insider's images
    profile: Profile
    settings: CopySettings  # of the copies; the insider knows them
    push: float = (
        0.0  # paper, weight carrier: margin given to every bit before the episodes; 0: the hinge alone
    )

    def write(self, state: ModelState, words: Own, effort: Effort, rng: np.random.Generator) -> ModelState:
        """A model with these words in it, in the way copies are made."""
        terms = {name: each for name, each in self.terms.items() if name in words}
        job = Job(
            shared=state,
            model=rng.bytes(_SEED),
            profile=self.profile,
            terms=terms,
            references={name: self._reference(each, state) for name, each in terms.items()},
            pool=self.pool,
            settings=self._settings(effort),
        )
        return copy_of(job, writers_of(job), dict(words), row=0, step=lambda _share: None)

    def read(self, state: ModelState) -> Values:
        """Raw projections, where one number is one position and no shared model is needed."""
        return {
            name: reader_of(each).project(state)
            for name, each in self.terms.items()
            if not carrier(name).beside and not carrier(name).answers
        }

    def _reference(self, terms: Terms, state: ModelState) -> Floats | None:
        """Scores that other scores are aimed at beside: those of the state itself."""
        return reader_of(terms).project(state) if carrier(terms.carrier).answers else None

    def _settings(self, effort: Effort) -> CopySettings:
        """The copies' own, longer and stronger. Episodes are beside those of a copy."""
        settings = self.settings
        if self.profile == "paper":
            return replace(settings, episodes=effort.episodes, push_margin=self.push)
        longer, stronger = effort.episodes / settings.episodes, effort.factor
        marks = {}
        for name in (each for each in self.terms if carrier(each).trained):
            known = mark_config(name, settings)
            marks[name] = asdict(known) | {
                "passes": max(1, round(known.passes * longer)),
                "margin": known.margin * stronger,
            }
        sizes = [each.dimension for each in self.terms.values() if carrier(each.carrier).beside]
        strength = usual_strength(sum(sizes)) if settings.strength is None else settings.strength
        return replace(
            settings,
            share=min(1.0, settings.share * stronger),
            strength=min(1.0, strength * stronger),
            marks=marks,
        )


def given_terms(release: OpenRelease, copy: ModelState) -> dict[str, Terms]:
    """The operator's directions and probes. The shared model is not among them: the copy is in its place."""
    return {
        name: replace(release.terms(name), shared=copy if carrier(name).beside else None)
        for name in release.carriers
    }


def guessed_terms(
    copy: ModelState, row: Own, *, profile: Profile, pool: Pool, rng: np.random.Generator
) -> dict[str, Terms]:
    """Directions and probes of one's own, made as a release makes them; nothing here is the operator's."""
    found = {}
    for name, word in row.items():
        seed = rng.bytes(_SEED)
        survey = survey_of(name, copy, length=len(word), pool=pool, draws=Stream("insider", seed))
        found[name] = Terms(
            carrier=name,
            seed=seed,
            length=survey.length,
            profile=profile,
            dimension=survey.dimension,
            layers=survey.layers,
            deviations=survey.deviations,
            probes=survey.probes,
            shared=copy if carrier(name).beside else None,
        )
    return found
