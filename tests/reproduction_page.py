"""docs/reproduction.md and docs/figures: what the paper shows, drawn from results/ by its registry.

python -m tests.reproduction_page            # print the page
python -m tests.reproduction_page --write    # put it there, and its figures (needs Matplotlib)
"""

import argparse
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from zktrace.studies.exhibits import EXHIBITS, Exhibit
from zktrace.studies.provenance import provenance
from zktrace.studies.rows import Row, Rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
FIGURES = ROOT / "docs" / "figures"
MAIN = "paper.jsonl"
# where rows of a study are that the main file has none of: larger networks, fewer seeds
ELSEWHERE = {
    "federation": "federation-desk.jsonl",
    "tracing": "tracing-desk.jsonl",
    "disguise": "disguise-half.jsonl",
    "baselines": "baselines.jsonl",
}

HEAD = """\
# The paper's tables and figures

Every table and figure of the paper's evaluation, drawn again from the rows in
[results](../results/README.md), with the paper's values beside ours and a word on each. Words are explained
in the [glossary](glossary.md). The page is made by `python -m tests.reproduction_page --write`, and a test
compares the two.

    zktrace study paper --work DIR --cifar10 DIR --out rows.jsonl            # run everything, or go on
    zktrace study paper --work DIR --cifar10 DIR --out rows.jsonl --dry-run  # what is left
    zktrace study paper --out rows.jsonl --report page.html                  # your own rows as a page
    zktrace study figure tracing rows.jsonl --out tracing.svg                # one figure

The first command goes through all experiments with the first seed, then with the second, and so on;
stopped, it goes on where it was. By default networks are a quarter as wide as the paper's and trained for
about two minutes (preset `study`): about 15 hours of one core for everything. Costly experiments take one to
three of the paper's ten seeds. `--preset paper` takes its full sizes, and weeks. Figures and the HTML page
need the extra `report`: `pip install 'zktrace[report]'`.

How to read it: where the head of a column says *(paper)*, a value in parentheses is the paper's; columns that
are the paper's alone say so. Other parentheses are what their head says. ± is a standard deviation over
seeds. GNSS data are simulated here; the paper's were recorded. *What was run* stands below each: where
networks are smaller or trained for less than the paper's, compare differences and counts, not accuracies. The
comparison with published systems (`tab:baselines`, `tab:kd`) has a command and a page of its own
([baselines](baselines.md)).
"""


@cache
def saved(name: str) -> tuple[Row, ...]:
    """Rows of a file of results/; none where it is missing."""
    return tuple(Rows(ROOT / "results" / name).read())


def rows_for(exhibit: Exhibit) -> tuple[list[Row], list[str]]:
    """What it shows, and the files it is from: the main file, and others for studies it has nothing of."""
    found: list[Row] = []
    names: list[str] = []
    for study in exhibit.studies:
        for name in (MAIN, ELSEWHERE.get(study)):
            given = [row for row in saved(name) if row.trial.get("study") == study] if name else []
            some = exhibit.rows(given)
            if name and some:
                found += some
                names.append(name)
                break
    return found, list(dict.fromkeys(names))


def section(exhibit: Exhibit) -> str:
    """One exhibit: words, table or picture, what was run."""
    rows, names = rows_for(exhibit)
    parts = [f"## {exhibit.title} ({exhibit.kind})", f"In the paper: `{exhibit.label}`."]
    drawn = _drawn(exhibit, rows)
    if drawn is None:
        parts += ["There are no rows for it yet. They are made by:", f"    {exhibit.command}"]
        return "\n\n".join(parts)
    if words := exhibit.words(rows):
        parts.append(wrapped(words))
    parts.append(drawn)
    links = ", ".join(f"[{name}](../results/{name})" for name in names)
    parts.append(wrapped(f"*What was run.* {provenance(rows)} From {links}.") if rows else "*Computed.*")
    return "\n\n".join(parts)


def _drawn(exhibit: Exhibit, rows: Sequence[Row]) -> str | None:
    if exhibit.kind == "table":
        return exhibit.table(rows)
    found = exhibit.figure(rows)
    return None if found is None else wrapped(f"![{found.description}](figures/{exhibit.name}.svg)")


def wrapped(text: str) -> str:
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(f"{section(each)}\n" for each in EXHIBITS)])


def figures() -> dict[str, str]:
    """Pictures by the names of their files. Needs Matplotlib."""
    from zktrace.report.drawing import svg_file

    found = {each.name: each.figure(rows_for(each)[0]) for each in EXHIBITS if each.kind == "figure"}
    return {f"{name}.svg": svg_file(each) for name, each in found.items() if each is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description="Print docs/reproduction.md.")
    parser.add_argument("--write", action="store_true", help="write the page and its figures")
    if not parser.parse_args().write:
        print(page(), end="")
        return
    FIGURES.mkdir(exist_ok=True)
    for name, text in figures().items():
        (FIGURES / name).write_text(text)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
