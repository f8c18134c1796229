"""What the paper shows, in its order: each table and figure as a function of saved rows, and a word on it.

A table is taken from `tables.TABLES` by its name. An exhibit whose rows are not there says which command
makes them; one that needs none is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from zktrace.errors import InputError
from zktrace.studies.attack_words import attacks_carriers_words, attacks_words
from zktrace.studies.baselines_words import baselines_words, kd_words
from zktrace.studies.carrier_words import copy_cost_words, kdclass_words, twocarrier_words
from zktrace.studies.channel_price import channel_price_figure, channel_price_words
from zktrace.studies.computed_tables import (
    finite_guarantees_words,
    secrecy_words,
    soundness_split_words,
)
from zktrace.studies.disguise_tables import stability_words
from zktrace.studies.drawn_rows import shown
from zktrace.studies.figures import FigureData
from zktrace.studies.identity_figures import (
    survival_figure,
    survival_figure_words,
    tradeoff_figure,
    tradeoff_words,
)
from zktrace.studies.identity_words import (
    attribution_words,
    featurespace_words,
    noniid_words,
    stressors_words,
    survival_words,
    utility_words,
)
from zktrace.studies.paper_words import insiders_words, steering_words
from zktrace.studies.rows import Row
from zktrace.studies.strategy_tables import strategies_words
from zktrace.studies.tables import TABLES
from zktrace.studies.tracing_figure import tracing_figure, tracing_figure_words
from zktrace.studies.tracing_words import certified_audit_words, collusion_words, isolation_words

Words: TypeAlias = Callable[[Sequence[Row]], str]
Draw: TypeAlias = Callable[[Sequence[Row]], FigureData | None]
Kind: TypeAlias = Literal["table", "figure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A table or a figure of the paper."""

    name: str
    kind: Kind
    title: str
    label: str  # the paper's
    studies: tuple[str, ...]  # whose rows it is drawn from; none: it is computed
    experiments: tuple[str, ...] = ()  # of `study paper`, that make them
    words_of: Words | None = None
    figure_of: Draw | None = None

    @property
    def anchor(self) -> str:
        """Where a page has it."""
        return f"{self.kind}-{self.name}"

    @property
    def command(self) -> str:
        """What makes its rows."""
        if not self.experiments:
            return f"zktrace study {self.studies[0]} --work DIR --out FILE"
        chosen = " ".join(f"--only {each}" for each in self.experiments)
        return f"zktrace study paper {chosen} --work DIR --out FILE"

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Those it shows."""
        found = [row for row in rows if row.trial["study"] in self.studies]
        return shown(self.kind, self.name, found)

    def table(self, rows: Sequence[Row]) -> str | None:
        """Markdown; None where there is nothing to show."""
        found = self.rows(rows)
        if self.kind != "table" or (self.studies and not found):
            return None
        text = TABLES[self.name](found)
        return text if sum(line.startswith("|") for line in text.splitlines()) > 2 else None

    def figure(self, rows: Sequence[Row]) -> FigureData | None:
        """Panels; None where there is nothing to show."""
        return None if self.figure_of is None else self.figure_of(self.rows(rows))

    def words(self, rows: Sequence[Row]) -> str:
        """Where it agrees with the paper and where it differs; empty, where nobody wrote any."""
        return "" if self.words_of is None else self.words_of(self.rows(rows))


WORDS: Final[Mapping[str, Words]] = {  # of tables, by their names
    "attribution": attribution_words,
    "survival": survival_words,
    "isolation": isolation_words,
    "collusion": collusion_words,
    "certified-audit": certified_audit_words,
    "strategies": strategies_words,
    "twocarrier": twocarrier_words,
    "featurespace": featurespace_words,
    "attacks": attacks_words,
    "attacks-carriers": attacks_carriers_words,
    "finite-guarantees": finite_guarantees_words,
    "secrecy": secrecy_words,
    "soundness-split": soundness_split_words,
    "noniid": noniid_words,
    "kdclass": kdclass_words,
    "stressors": stressors_words,
    "insiders": insiders_words,
    "steering": steering_words,
    "copy-cost": copy_cost_words,
    "utility": utility_words,
    "baselines": baselines_words,
    "kd": kd_words,
    "stability": stability_words,
}
_FIGURES: Final[Mapping[str, tuple[Draw, Words]]] = {
    "survival": (survival_figure, survival_figure_words),
    "tracing": (tracing_figure, tracing_figure_words),
    "tradeoff": (tradeoff_figure, tradeoff_words),
    "channel-price": (channel_price_figure, channel_price_words),
}


def _table(
    name: str, title: str, label: str, studies: tuple[str, ...] = (), *, by: tuple[str, ...] = ()
) -> Exhibit:
    return Exhibit(
        name=name,
        kind="table",
        title=title,
        label=label,
        studies=studies,
        experiments=by or studies,
        words_of=WORDS.get(name),
    )


def _figure(
    name: str, title: str, label: str, studies: tuple[str, ...] = (), *, by: tuple[str, ...] = ()
) -> Exhibit:
    draw, words = _FIGURES[name]
    return Exhibit(
        name=name,
        kind="figure",
        title=title,
        label=label,
        studies=studies,
        experiments=by or studies,
        words_of=words,
        figure_of=draw,
    )


def _alone(name: str, title: str, label: str, *further: str) -> Exhibit:
    """Of the study of published systems, which is no experiment of the plan; and of further ones."""
    return replace(_table(name, title, label, ("baselines", *further)), experiments=())


_TRAINED: Final = ("federation", "stressors")
_MODELS: Final = ("attacked-models", "attacks", "distillation")
_LEAKED: Final = ("tracing", "crowd", "shifted")
_SHOWN: Final = (
    _table(
        "attribution",
        "Attribution on the shared model",
        "tab:attribution",
        ("federation", "baselines"),
        by=("federation",),
    ),
    _table("survival", "Survival of codewords by load", "tab:survival", _TRAINED),
    _figure("survival", "Attribution against load", "fig:survival", _TRAINED),
    _table("isolation", "Single leakers", "tab:isolation", ("tracing",), by=_LEAKED),
    _table("collusion", "Coalitions, by thresholds alone", "tab:collusion", ("tracing",), by=_LEAKED),
    _figure(
        "tracing",
        "Coalitions and the margin of scores",
        "fig:tracing",
        ("tracing", "baselines"),
        by=("tracing",),
    ),
    _table("certified-audit", "Coalitions, by certificates", "tab:certified-audit", ("tracing",), by=_LEAKED),
    _table(
        "twocarrier",
        "Two carriers side by side",
        "tab:twocarrier",
        ("attacks", "tracing"),
        by=("tracing", "distillation"),
    ),
    _table("featurespace", "Geometry of features", "tab:featurespace", ("federation",)),
    _alone("baselines", "Published systems on the same pipeline", "tab:baselines"),
    _table("attacks", "Attacks on identity marks", "tab:attacks", ("attacks",), by=_MODELS),
    _figure(
        "tradeoff", "Accuracy against what is left of the mark", "fig:tradeoff", ("attacks",), by=_MODELS
    ),
    _table("finite-guarantees", "Finite guarantees", "tab:finite-guarantees"),
    _table("secrecy", "Who keeps what", "tab:secrecy"),
    _table("soundness-split", "Quantities of security", "tab:soundness-split"),
    _table("noniid", "Skewed data and partial participation", "tab:noniid", _TRAINED),
    _table("kdclass", "Distillers by what they copy", "tab:kdclass", ("disguise",)),
    _table(
        "stability",
        "What was promised of students",
        "prop:kd-robust",
        ("disguise", "attacks"),
        by=("disguise", "distillation"),
    ),
    _alone("kd", "Students of published systems, and of ours", "tab:kd", "attacks"),
    _table("stressors", "Median, and shifted receivers", "sub:stressors", _TRAINED, by=("stressors",)),
    _table("insiders", "Recipients who erase their own rows", "sub:stressors", ("insiders",)),
    _table("copy-cost", "What a copy costs, class by class", "sub:stressors", ("tracing",)),
    _table("steering", "Coalitions that steer a word", "sub:tracing-ext", ("steering",)),
    _table("utility", "Equivalence of the shared model", "tab:utility", ("federation",)),
    _table(
        "attacks-carriers",
        "Attacks on copies, carrier by carrier",
        "sub:attack-protocol",
        ("attacks",),
        by=("attacked-copies", "distillation"),
    ),
    _table("strategies", "Coalitions by strategy", "sub:attack-protocol", ("tracing",), by=("strategies",)),
    _figure("channel-price", "Design and certification", "fig:channel-price"),
)
EXHIBITS: Final = tuple(each for each in _SHOWN if each.kind == "figure" or each.name in TABLES)
FIGURES: Final = {each.name: each for each in EXHIBITS if each.kind == "figure"}


def figure_named(name: str) -> Exhibit:
    """A figure by its name."""
    if name not in FIGURES:
        raise InputError(f"no figure {name!r}; known: {', '.join(FIGURES)}")
    return FIGURES[name]
