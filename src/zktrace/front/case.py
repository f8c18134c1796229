"""A case as its operator gets it: the verdict, who is named, the evidence, and where it is kept."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zktrace.carriers import carrier
from zktrace.certificates.adjudicate import Verdict
from zktrace.errors import Error
from zktrace.evidence import Evidence
from zktrace.evidence.file import FILE_LIMIT
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.registry.overview import CaseLine
from zktrace.registry.workspace import Home
from zktrace.releases import ReleaseFolder
from zktrace.report.case import case_html
from zktrace.report.tracing import report_of
from zktrace.report.words import explain
from zktrace.tracing import Case


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedCase:
    """What came of an investigation. Its evidence lies in the workspace's cases/ already."""

    case: Case
    home: Home
    path: Path | None  # of the evidence; None if it could not be kept
    leads: Path | None  # of leads, a secret for the operator alone
    unread: tuple[tuple[str, str], ...]  # carriers that could not be read, and why
    warnings: tuple[str, ...]  # what could not be kept, and why
    remarks: tuple[tuple[str, str], ...] = ()  # (carrier, how parts of the suspect were found, or were not)
    source: Path | None = None  # of the suspect, if it was a file
    scores: bool = False  # whether it was only asked

    def __repr__(self) -> str:
        return f"<TracedCase {self.verdict}: {', '.join(self.named) or 'nobody'}>"

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        return self.case.verdict

    @property
    def named(self) -> tuple[str, ...]:
        """The stations that are named, each once."""
        return self.case.names

    @property
    def evidence(self) -> Evidence:
        """What a judge gets."""
        return self.case.evidence

    def explain(self, *, all_scores: bool = False) -> str:
        """The verdict in words; the first line is its headline."""
        return explain(self.case, all_scores=all_scores)

    def given_to_judge(self) -> tuple[str | Path, ...]:
        """What a judge is given beside evidence and head; also the shared model, where reading takes it."""
        given: tuple[str | Path, ...] = ()
        if self.source is not None:
            given = ("--scores" if self.scores else "--suspect", self.source)
        if self.case.named and self._by_model:
            folder = ReleaseFolder(path=self.home.release_folder(self.case.investigation.release))
            given = (*given, "--shared", folder.shared_path)
        return given

    @property
    def _by_model(self) -> bool:
        """Whether the look that named held the suspect beside the shared model, which a judge can repeat."""
        look = self.case.look
        read = [carrier(name) for name in look.carriers]
        ways = [how for each in read for how in each.alignments]
        aligned = any(how.name == look.alignment and not how.images for how in ways)
        return aligned or any(each.beside for each in read)

    def report(self, path: str | Path, *, replace: bool = False, all_scores: bool = False) -> Path:
        """Write a page for people (HTML, mode 0600)."""
        shown = report_of(
            self.case,
            self.home.registry.known().ledger,
            suspect=self.source or Path("the suspect"),
            given=self.given_to_judge(),
            evidence=self.path or Path("case.zkt.json"),
            all_scores=all_scores,
        )
        write_atomic(Path(path), case_html(shown).encode(), secret=True, replace=replace)
        return Path(path)


def free_case_path(home: Home, place: int) -> Path:
    """Where the evidence of an investigation is kept."""
    kept = home.cases_folder() / f"case-{place}.zkt.json"
    while os.path.lexists(kept):  # of a log that was set back
        kept = kept.with_name(f"again-{kept.name}")
    return kept


def kept_evidence(home: Home, line: CaseLine) -> Path | None:
    """The file in cases/ whose findings are those on record; one of another log does not count."""
    if line.verdict is None:
        return None
    found = (home.root / "cases").glob(f"*case-{line.place}.zkt.json")
    for path in sorted(found, key=lambda each: len(each.name)):
        try:
            evidence = Evidence.from_bytes(read_bounded(path, limit=FILE_LIMIT))
        except (Error, OSError):
            continue
        if evidence.findings.digest() == line.verdict.findings:
            return path
    return None


def keep_leads(home: Home, case: Case) -> tuple[Path | None, list[str]]:
    """Leads are kept beside the code key, so that the operator need not pay for another look to see them."""
    if not case.leads:
        return None, []
    kept = home.code_key_path.with_name(f"leads-{case.place}.txt")
    text = f"{explain(case, all_scores=True)}\n"
    failed = tried(lambda: write_atomic(kept, text.encode(), secret=True, replace=True))
    return None if failed else kept, failed


def tried(write: Callable[[], object]) -> list[str]:
    """Why it did not work, if it did not: after a verdict nothing may hide it."""
    try:
        write()
    except (Error, OSError) as error:
        return [str(error)]
    return []
