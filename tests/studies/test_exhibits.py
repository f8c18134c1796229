"""The registry of what the paper shows: its order, what is missing, and a word on each."""

import subprocess
import sys

import pytest

from studies.paper_rows import row, some
from zktrace.errors import InputError
from zktrace.studies.exhibits import EXHIBITS, WORDS, figure_named
from zktrace.studies.provenance import provenance
from zktrace.studies.tables import COMPUTED, TABLES

PAPERS_ORDER = (
    "tab:attribution",
    "tab:survival",
    "fig:survival",
    "tab:isolation",
    "tab:collusion",
    "fig:tracing",
    "tab:certified-audit",
    "tab:twocarrier",
    "tab:featurespace",
    "tab:baselines",
    "tab:attacks",
    "fig:tradeoff",
    "tab:finite-guarantees",
    "tab:secrecy",
    "tab:soundness-split",
    "tab:noniid",
    "tab:kdclass",
    "prop:kd-robust",
    "tab:kd",
    "sub:stressors",
    "sub:tracing-ext",
    "tab:utility",
    "sub:attack-protocol",
    "fig:channel-price",
)


def test_exhibits_stand_in_the_papers_order() -> None:
    labels = list(dict.fromkeys(each.label for each in EXHIBITS))
    assert labels == [each for each in PAPERS_ORDER if each in labels]
    assert len({each.anchor for each in EXHIBITS}) == len(EXHIBITS)


def test_every_exhibit_can_be_drawn_and_has_a_word() -> None:
    for each in EXHIBITS:
        assert each.kind == "figure" or each.name in TABLES
        assert each.words_of is not None, f"{each.name}: add its words to WORDS"
    assert set(WORDS) <= set(TABLES)


def test_what_has_no_rows_says_what_makes_them() -> None:
    for each in EXHIBITS:
        drawn = each.table([]) or each.figure([])
        assert (drawn is not None) == (not each.studies)
        if each.studies:
            plan = bool(each.experiments)
            assert each.command.startswith(
                "zktrace study paper --only " if plan else "zktrace study baselines "
            )
    shown = {each.name for each in EXHIBITS if each.kind == "table" and not each.studies}
    assert shown == COMPUTED - {"baseline-parameters"}, "which the page of the systems has"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("attacks", "3 of 3 attacks of the paper's table leave attribution within 0.1"),
        ("steering", "traced in 400 of 400 (paper: every one). An innocent is named under"),
        ("steering", "3 members, law tardos, oracle at 1 of the positions, are traced in 10 of 400"),
    ],
)
def test_words_are_computed_from_rows(name: str, said: str) -> None:
    rows = some()
    exhibit = next(each for each in EXHIBITS if each.kind == "table" and each.name == name)
    assert exhibit.table(rows) is not None
    assert said in exhibit.words(rows)


def test_provenance_says_width_rounds_epochs_images_and_seeds() -> None:
    rows = [each for each in some() if each.trial["study"] == "federation"]
    assert provenance(rows) == (
        "GNSS, simulated: width 16; 10 stations; 10 rounds; 10 epochs of pre-training; 10,000 images an "
        "epoch; 1 seed (42). 2 rows, made at abc."
    )
    assert provenance([]) == ""


def test_what_was_run_counts_what_an_exhibit_shows() -> None:
    """Copies of several are not among single ones, nor controls among federations with marks."""
    rows = some()
    counts = {
        (each.kind, each.name): len(each.rows(rows)) for each in EXHIBITS if each.rows(rows) or each.studies
    }
    assert counts["table", "attribution"] == 1
    assert counts["table", "utility"] == 2
    assert (counts["table", "isolation"], counts["table", "collusion"]) == (1, 3)
    assert counts["figure", "tracing"] == 4
    assert counts["table", "strategies"] == counts["table", "copy-cost"] == 0
    assert (counts["table", "attacks"], counts["table", "attacks-carriers"]) == (3, 0)
    assert counts["table", "steering"] == 2


def test_provenance_tells_seeds_of_studies_apart_and_what_was_trained() -> None:
    copies = {"profile": "paper", "settings": {"episodes": 300}, "dataset": "gnss"}
    insider = row("insiders", {}, **copies, episodes=600, samples=4096)
    assert provenance([insider]) == (
        "GNSS, simulated: copies in the paper's profile of 300 episodes; insiders of 600 episodes on 4,096 "
        "images; 1 seed (42). 1 row, made at abc."
    )
    student = row("disguise", {}, dataset="gnss", seed=7, students={"epochs": 8, "samples": 16_000})
    assert "students of 8 epochs on 16,000 images; 1 seed (42) of insiders; 1 seed (7) of disguise." in (
        provenance([insider, student])
    )


def test_a_figure_that_is_not_known_is_an_error() -> None:
    assert figure_named("tracing").kind == "figure"
    with pytest.raises(InputError, match="no figure 'moon'; known: survival"):
        figure_named("moon")


def test_exhibits_are_drawn_without_torch() -> None:
    code = "import sys, zktrace.studies.exhibits, zktrace.studies.provenance; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "False\n"
