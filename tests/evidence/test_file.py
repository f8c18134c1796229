"""The evidence file: one text for a case, nothing in it that a judge does not need, bounds before work."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support import unchecked
from tracing.small import Federation, federation
from zktrace.certificates.adjudicate import Verdict
from zktrace.errors import MalformedEvidence
from zktrace.evidence import Evidence
from zktrace.evidence.file import FILE_LIMIT, LENGTH_LIMIT
from zktrace.evidence.findings import WORK_LIMIT
from zktrace.registry.records import RELEASE


@pytest.fixture(scope="module")
def two() -> tuple[Federation, Evidence]:
    """A federation with two carriers, and the evidence against two of its six stations."""
    own = federation(carriers=("weight", "feature"))
    return own, own.trace((1, 4), carriers=("weight", "feature")).evidence


def test_a_file_reads_back_as_it_was_written(two: tuple[Federation, Evidence]) -> None:
    _, evidence = two
    again = Evidence.from_bytes(evidence.to_bytes())
    assert again == evidence
    assert again.to_bytes() == evidence.to_bytes()
    assert {each.station for each in again.accused} == {"station-1", "station-4"}


def test_nobody_elses_row_and_no_key_is_in_the_file(two: tuple[Federation, Evidence]) -> None:
    own, evidence = two
    text = evidence.to_bytes().decode()
    for carrier in ("weight", "feature"):
        code = own.code(carrier)
        for row in range(6):
            assert (code.row_seed(row).hex() in text) == (row in (1, 4))
            assert own.row(carrier, row).hex() not in text  # a judge makes it
        assert code.biases.thresholds.astype(">u4").tobytes().hex() not in text
        assert own.seed(carrier).hex() not in text
        assert own.custody.seed(RELEASE, carrier, 1).hex() not in text
    assert own.custody.key.secret.hex() not in text
    for name in ("station-0", "station-2", "station-3", "station-5"):
        assert name not in text


def test_a_carrier_that_names_nobody_stays_closed() -> None:
    own = federation(carriers=("weight", "feature"))
    silent = np.random.default_rng(3).standard_normal(128)
    marked = own.copy_readout("weight", (2,))
    case = own.investigate([own.readout("weight", marked), own.readout("feature", silent)])
    text = case.evidence.to_bytes().decode()
    assert case.names == ("station-2",)
    assert [each.carrier for each in case.evidence.carriers] == ["weight"]
    assert own.code("weight").bias_seed.hex() in text
    assert own.code("feature").bias_seed.hex() not in text
    assert own.custody.seed(RELEASE, "feature", 0).hex() not in text
    assert own.code("feature").row_seed(2).hex() not in text


@pytest.mark.parametrize("budget", [Fraction(1, 1000), Fraction(0)])
def test_without_an_accusation_nothing_is_opened(budget: Fraction) -> None:
    own = federation()
    values = (
        own.copy_readout("weight", (2,)) if budget == 0 else np.random.default_rng(3).standard_normal(128)
    )
    case = own.investigate([own.readout("weight", values)], budget=budget)
    assert case.verdict == (Verdict.LEAD if budget == 0 else Verdict.NOTHING)
    text = case.evidence.to_bytes().decode()
    assert case.evidence.carriers == case.evidence.accused == case.evidence.findings.stages == ()
    assert own.code("weight").bias_seed.hex() not in text
    assert own.custody.seed(RELEASE, "weight", 0).hex() not in text
    assert own.code("weight").row_seed(2).hex() not in text
    assert "station-2" not in text


def changed(evidence: Evidence, *path: str | int, to: object) -> bytes:
    """The canonical text with one value replaced."""
    tree = json.loads(evidence.to_bytes())
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("format",), "zkt-evidence-v2"),
        (("head",), 3),
        (("entries",), []),
        (("entries", 0, "index"), -1),
        (("entries", 0, "index"), True),
        (("entries", 0, "path"), ["00"]),
        (("carriers",), []),
        (("carriers", 0, "readout"), "00"),
        (("carriers", 0, "readout"), "7ff0000000000000" * 128),
        (("carriers", 0, "readout"), "FF" * 1024),
        (("carriers", 0, "carrier"), "feature"),
        (("accused",), []),
        (("accused", 0, "station"), "station-9"),
        (("accused", 0, "rows"), []),
        (("findings", "verdict"), "guilty"),
        (("findings", "verdict"), "no-certified-evidence"),
        (("findings", "level"), "2/2000"),
        (("findings", "level"), "3/2"),
        (("findings", "stages"), []),
        (("findings", "stages", 0, "tail"), "both"),
        (("findings", "stages", 0, "named", 0, "score"), "1" + "0" * 40 + "/1"),
        (("findings", "stages", 0, "named", 0, "carrier"), "feature"),
        (("findings", "stages", 0, "certificates", 0, "certificate", "passes"), 1),
        (("findings", "stages", 0, "certificates", 0, "certificate", "law"), "x" * 64),
    ],
)
def test_another_shape_is_malformed(path: tuple[str | int, ...], to: object) -> None:
    evidence = _one()
    with pytest.raises(MalformedEvidence):
        Evidence.from_bytes(changed(evidence, *path, to=to))


def _one(cache: list[Evidence] = []) -> Evidence:  # noqa: B006
    if not cache:
        cache.append(federation().trace((2,)).evidence)
    return cache[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format":"zkt-evidence-v1"}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"1" * 5000,
        b" " * (FILE_LIMIT + 1),
    ],
    ids=["empty", "open", "list", "null", "bare", "deep", "encoding", "digits", "large"],
)
def test_what_is_no_evidence_file_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedEvidence):
        Evidence.from_bytes(data)


def test_a_flood_of_small_values_is_refused_before_it_is_parsed() -> None:
    """64 MiB of empty lists would take two gigabytes."""
    with pytest.raises(MalformedEvidence, match="more than 262144 values"):
        Evidence.from_bytes(b'{"accused":[' + b"[]," * (1 << 18) + b"[]]}")


def test_a_code_longer_than_the_limit_is_malformed() -> None:
    """Before anything of that length is scored or certified."""
    own = _one()
    for length, fits in ((LENGTH_LIMIT, True), (LENGTH_LIMIT + 1, False)):
        opening = unchecked(own.carriers[0], readout=bytes(8 * length), reference=b"")
        data = unchecked(own, carriers=(opening,)).to_bytes()
        if fits:
            assert Evidence.from_bytes(data).carriers[0].length == length
        else:
            with pytest.raises(MalformedEvidence, match="readout: must be"):
                Evidence.from_bytes(data)


def crowded(first: int, later: int) -> Evidence:
    """Evidence of the longest code that names many at first, and one more at each of some later stages."""
    own = _one()
    opening = unchecked(own.carriers[0], readout=bytes(8 * LENGTH_LIMIT), reference=b"")
    (stage,), (accused,) = own.findings.stages, own.accused
    names = [f"s{i}" for i in range(first + later)]
    groups = [names[:first], *([name] for name in names[first:])]
    stages = tuple(
        replace(stage, named=tuple(replace(stage.named[0], station=name) for name in group))
        for group in groups
    )
    made: Evidence = unchecked(
        own,
        carriers=(opening,),
        accused=tuple(replace(accused, station=name) for name in names),
        findings=replace(own.findings, stages=stages),
    )
    return made


def test_judging_is_bounded_by_stages_and_rows_too() -> None:
    for first, later, fits in (
        (1, 15, True),
        (256, 0, True),
        (64, 15, True),
        (200, 8, True),
        (200, 15, False),
    ):
        evidence = crowded(first, later)
        assert (evidence.work <= WORK_LIMIT) == fits
        if fits:
            assert Evidence.from_bytes(evidence.to_bytes()) == evidence
        else:
            with pytest.raises(MalformedEvidence, match="take a judge"):
                Evidence.from_bytes(evidence.to_bytes())


def test_spaces_and_another_order_are_not_canonical() -> None:
    tree = json.loads(_one().to_bytes())
    for text in (
        json.dumps(tree, sort_keys=True),
        json.dumps(dict(reversed(tree.items())), separators=(",", ":")),
    ):
        with pytest.raises(MalformedEvidence, match="canonical"):
            Evidence.from_bytes(text.encode())


def test_a_field_more_is_malformed() -> None:
    tree = json.loads(_one().to_bytes())
    tree["note"] = "trust me"
    with pytest.raises(MalformedEvidence, match="exactly the fields"):
        Evidence.from_bytes(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode())
