"""The figure of design and certification (`fig:channel-price`): computed, no rows are needed."""

from collections.abc import Sequence
from typing import Final

from zktrace.certificates.lengths import bernstein_threshold, candidate_threshold
from zktrace.studies.figures import Curve, FigureData, Panel
from zktrace.studies.rows import Row

RECIPIENTS: Final = 10
LEVEL: Final = 1e-3
DESIGN: Final = 2
_LENGTHS: Final = (128, 256, 512, 1024, 2048, 4096)
_RATES: Final = tuple(step / 100 for step in range(0, 41, 2))
_STIPULATED: Final = (0.04, 0.15)  # of tab:finite-guarantees


def multiplier(rate: float) -> float:
    """(1 - 2q)^-2 of `eq:design`."""
    return (1.0 - 2.0 * rate) ** -2


def channel_price_figure(_rows: Sequence[Row]) -> FigureData:
    """`fig:channel-price`, computed: what flips cost in length, and thresholds by length."""
    candidate = [candidate_threshold(length=n, recipients=RECIPIENTS, level=LEVEL) for n in _LENGTHS]
    certified = [
        bernstein_threshold(design=DESIGN, length=n, recipients=RECIPIENTS, level=LEVEL) for n in _LENGTHS
    ]
    price = Panel(
        title="Price of a noisy channel",
        x="flip rate q",
        y="times the length",
        curves=(
            Curve(label="(1 - 2q)^-2", points=tuple((q, multiplier(q)) for q in _RATES), marker="none"),
            Curve(
                label="q of the finite guarantees",
                points=tuple((q, multiplier(q)) for q in _STIPULATED),
                hue="orange",
                marker="square",
                joined=False,
            ),
        ),
    )
    places = tuple(map(float, range(len(_LENGTHS))))
    thresholds = Panel(
        title="Thresholds of one tail",
        x="positions of the code",
        y="score",
        curves=(
            Curve(label="candidate", points=tuple(zip(places, candidate, strict=True))),
            Curve(
                label="Bernstein, certified",
                points=tuple(zip(places, certified, strict=True)),
                hue="orange",
                marker="square",
            ),
        ),
        places=tuple(map(str, _LENGTHS)),
    )
    return FigureData(
        name="channel-price",
        title="Design and certification are separate",
        description="Left: by how much a residual flip rate lengthens a code that is planned by the "
        "asymptotic rule. Right: the candidate threshold, and the one that Bernstein's bound certifies, by "
        "length.",
        panels=(price, thresholds),
    )


def channel_price_words(_rows: Sequence[Row]) -> str:
    """Numbers at the lengths of the two carriers."""
    said = []
    for n in (512, 2048):
        low = candidate_threshold(length=n, recipients=RECIPIENTS, level=LEVEL)
        high = bernstein_threshold(design=DESIGN, length=n, recipients=RECIPIENTS, level=LEVEL)
        said.append(f"at {n} positions {low:.1f} and {high:.1f}")
    rates = " and ".join(f"{multiplier(q):.2f} at q = {q:g}" for q in _STIPULATED)
    return (
        f"A planned length grows by {rates}. The candidate and the certified threshold are {', '.join(said)} "
        "(two colluders, ten stations, 1/1000 for one tail; paper: 97.1 for the candidate at 512). The "
        "certified one does not say that a colluder passes it."
    )
