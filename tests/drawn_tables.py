"""Tables of the pages that are drawn from saved rows.

python -m tests.drawn_tables --write    # draw them again
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from zktrace.studies.rows import Rows
from zktrace.studies.tables import TABLES

ROOT = Path(__file__).parent.parent
_DRAWN = re.compile(
    r"<!-- drawn by: zktrace study table ((?:results/\S+ )+)--kind (\S+)((?: --seed \d+)*) -->\n\n(.*?)\n\n",
    re.DOTALL,
)


class Drawn(NamedTuple):
    """A table of a page, and what it is drawn from."""

    files: str
    kind: str
    seeds: str
    shown: str

    def again(self) -> str:
        """As saved rows have it now."""
        only = {int(each) for each in self.seeds.split() if each.isdigit()}
        rows = [row for name in self.files.split() for row in Rows(ROOT / name).read()]
        return TABLES[self.kind]([row for row in rows if not only or row.trial.get("seed") in only])


def tables(page: Path) -> Iterator[Drawn]:
    """Those of a page."""
    return (Drawn(*found.groups()) for found in _DRAWN.finditer(page.read_text()))


def _again(found: re.Match[str]) -> str:
    """The same place of a page with the table as rows have it now."""
    start, end = (place - found.start() for place in found.span(4))
    return found[0][:start] + Drawn(*found.groups()).again() + found[0][end:]


def main() -> None:
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        text = _DRAWN.sub(_again, page.read_text())
        if text != page.read_text():
            page.write_text(text)
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
