"""Numbers in the prose of the documentation are those of the saved rows, or of what computes them.

A claim is a piece of a page with its numbers left open; they are filled in from their source, and the outcome
must stand in the page, whatever its line breaks. Times are not among them.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pytest

from zktrace.certificates.certificate import Method, smallest_threshold
from zktrace.certificates.intervals import upper_decimal
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes import Code, CodeKey, symmetric, unpack
from zktrace.credentials.params import DEFAULT, PAPER, XLPNParams
from zktrace.derivation.promises import TREE_LIMIT
from zktrace.dispatch.standing import BUDGET
from zktrace.evidence.file import FILE_LIMIT
from zktrace.registry.custody import PLACES, RELEASES
from zktrace.registry.requests import FILE_LIMIT as REQUEST_LIMIT
from zktrace.registry.requests import PROOF_LIMIT
from zktrace.releases.lineage import LEVEL
from zktrace.service.totp import DIGITS, WINDOW
from zktrace.service.visitors import WRONG_CODES, WRONG_SECONDS
from zktrace.studies.cells import deciding_score as deviations_of
from zktrace.studies.rows import Row, Rows

ROOT = Path(__file__).parents[1]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

Facts = dict[str, Any]


class Claim(NamedTuple):
    page: str
    text: str  # a piece of the page, numbers left open
    facts: Callable[[], Facts]  # from their source


def disguised(profile: str = "informed", data: str = "", **wanted: object) -> list[Row]:
    """Rows of disguised copies: by attacker, epochs, samples, inside."""
    rows = [
        row
        for row in Rows(ROOT / "results" / "disguise-half.jsonl").read()
        if row.trial["profile"] == profile and data in ("", row.trial["dataset"])
    ]
    return [
        row
        for row in rows
        if all({**row.trial, **(row.trial.get("students") or {})}.get(k) == v for k, v in wanted.items())
    ]


def named(rows: list[Row], column: str = "all") -> int:
    return sum(bool(row.outcome["columns"][column]["named"]) for row in rows)


def sigmas(rows: list[Row], column: str = "output") -> list[float]:
    found = [deviations_of(row.outcome["columns"][column]) for row in rows]
    return [each for each in found if each is not None]


def points(rows: list[Row], of: str, less: str) -> list[float]:
    """How many points of accuracy a model has less than another."""
    return [100 * (row.outcome[less] - row.outcome[of]) for row in rows]


def soft_labels() -> Facts:
    usual = disguised(attacker="logits", samples=16_000, inside=False)
    pairs = disguised(attacker="pair-logits", epochs=20)
    costs = points(disguised(attacker="none"), "copy_accuracy", "shared_accuracy")
    return {
        "named": named(usual),
        "runs": len(usual),
        "low": min(costs),
        "high": max(costs),
        "pairs": named(pairs),
        "of": len(pairs),
        "pairs_word": WORDS[named(pairs)],
        "of_word": WORDS[len(pairs)],
        "least": min(sigmas(disguised(attacker="logits", samples=16_000))),
        "outside": min(sigmas(usual)),
        "runs_word": WORDS[len(usual)],
    }


def short_pairs() -> Facts:
    rows = disguised(attacker="pair-logits", epochs=10)
    long = disguised(data="cifar10", attacker="pair-logits", epochs=20)
    return {
        "low": min(sigmas(rows)),
        "high": max(sigmas(rows)),
        "below": WORDS[round(mean(points(rows, "accuracy", "copy_accuracy")))],
        "above": WORDS[round(-mean(points(long, "accuracy", "copy_accuracy")))],
    }


def pairs() -> Facts:
    cifar, gnss = (
        named(disguised(data=data, attacker="pair-logits", epochs=20)) for data in ("cifar10", "gnss")
    )
    return {"cifar": WORDS[cifar], "gnss": WORDS[gnss]}


def few_images() -> Facts:
    (row,) = disguised(attacker="logits", samples=4_000)
    return {
        "deviations": sigmas([row])[0],
        "below": WORDS[round(points([row], "accuracy", "copy_accuracy")[0])],
    }


def headless() -> Facts:
    rows = disguised(attacker="headless")
    below = points(rows, "accuracy", "copy_accuracy")
    return {
        "low": min(sigmas(rows)),
        "high": max(sigmas(rows)),
        "least": WORDS[round(min(below))],
        "most": f"twenty-{WORDS[round(max(below)) - 20]}",
    }


def distances() -> Facts:
    rows = disguised(data="gnss", attacker="distances")
    below = points(rows, "accuracy", "copy_accuracy")
    return {
        "scores": "{:.1f}, {:.1f} and {:.1f}".format(*sorted(sigmas(rows))),
        "least": WORDS[round(min(below))],
        "most": WORDS[round(max(below))],
        "cifar": named(disguised(data="cifar10", attacker="distances")),
    }


def papers_copies() -> Facts:
    costs = points(disguised("paper", attacker="none"), "copy_accuracy", "shared_accuracy")
    leads = [
        row
        for row in disguised("paper", "cifar10", attacker="deeper")
        if row.outcome["columns"]["all"]["verdict"] == "uncertified-lead"
    ]
    return {
        "low": min(costs),
        "high": max(costs),
        "leads": WORDS[len(leads)].capitalize(),
        "scores": " and ".join(f"{each:.0f}" for each in sorted(sigmas(leads, "all"))),
    }


def innocents() -> Facts:
    rows = [
        row
        for row in Rows(ROOT / "results" / "innocents-desk.jsonl").read()
        if row.trial["level"] == "1/5"
        and row.trial["profile"] == "informed"
        and row.trial["kind"] != "the shared model itself"
    ]
    found, keys = (sum(row.outcome[name] for row in rows) for name in ("namings", "keys"))
    return {"named": found, "keys": keys, "rate": 100 * found / keys, "suspects": WORDS[len(rows)]}


def raw_push() -> Facts:
    import json

    kept = json.loads((ROOT / "results" / "federation-raw-push.jsonl").read_text())
    return {"accuracy": 100 * kept["accuracy"], "norm": kept["baseline_norm"]}


def proof_kb(params: XLPNParams) -> float:
    """Mean size of a proof by the table of its bytes: each challenge is as likely as another."""
    shift = (params.length // params.weight).bit_length() - 1
    code = -(-(params.weight + -(-params.length >> shift) + params.weight * shift) // 8)
    answers = 64 + (96 + params.secret // 8 + params.length // 8) + (96 + code)
    head = 12 + 1 + len(params.name) + 1 + 32 + -(-params.rounds // 5)
    return (head + params.rounds * answers / 3) / 1000


def proofs() -> Facts:
    return {"default": proof_kb(DEFAULT), "paper": proof_kb(PAPER), "rounds": DEFAULT.rounds}


def threshold(length: int, colluders: int, method: Method) -> str:
    """Of a clean row, as `benchmarks/bench_certificates.py` has it: upwards to a tenth."""
    code = Code(key=CodeKey.generate(entropy=bytes), label="bench", length=length, colluders=colluders)
    own = symmetric(unpack(code.rows([0]), length)[0], code.biases)
    found = smallest_threshold(own, recipients=10, level=5e-4, method=method).threshold
    return upper_decimal(found, 3 if found < 100 else 4)


def thresholds() -> Facts:
    sizes = {"512": (512, 2), "2048": (2048, 3)}
    exact = {f"exact_{name}": threshold(*size, "exact") for name, size in sizes.items()}
    chernoff = {f"chernoff_{name}": threshold(*size, "chernoff") for name, size in sizes.items()}
    papers = {
        f"candidate_{name}": candidate_threshold(length=n, recipients=10, level=1e-3, tails=2)
        for name, (n, _) in sizes.items()
    }
    return exact | chernoff | papers


def constants() -> Facts:
    return {
        "places": PLACES,
        "releases": RELEASES,
        "tree": TREE_LIMIT,
        "once_in": round(1 / LEVEL),
        "budget": BUDGET,
        "request": REQUEST_LIMIT,
        "proof": PROOF_LIMIT,
        "evidence": FILE_LIMIT >> 20,
    }


def guesses() -> Facts:
    right, minutes = 2 * WINDOW + 1, WRONG_SECONDS // 60
    chance = 1 - (1 - right / 10**DIGITS) ** (WRONG_CODES * 24 * 60 / minutes)
    return {"right": right, "tries": WRONG_CODES, "minutes": minutes, "chance": 100 * chance}


CLAIMS = [
    Claim("README.md", "what it says in {named} of {runs} runs if", soft_labels),
    Claim("README.md", "copies cost {low:.1f} to {high:.1f} points there", soft_labels),
    Claim("README.md", "two averaged copies taught for twenty epochs, {pairs} of {of} are", soft_labels),
    Claim("README.md", "| credential proof, {rounds} rounds | {default:.0f} kB ({paper:.0f} kB at", proofs),
    Claim(
        "README.md",
        "a clean row of 512 bits | {exact_512} (exact tail) | {candidate_512:.1f} (candidate) |",
        thresholds,
    ),
    Claim("README.md", "the same for 2048 bits | {exact_2048} | {candidate_2048:.1f} |", thresholds),
    Claim(
        "docs/adr/0003-scores-on-a-lattice.md",
        "threshold {exact_512} at 512 positions (Chernoff {chernoff_512}, the paper's candidate "
        "{candidate_512:.1f}) and {exact_2048} at 2048 ({chernoff_2048}, {candidate_2048:.1f})",
        thresholds,
    ),
    Claim("docs/service.md", "{right} codes in a million are right at a time", guesses),
    Claim(
        "docs/service.md",
        "After {tries} wrong ones beside the right password, within {minutes} minutes",
        guesses,
    ),
    Claim("docs/service.md", "guesses right within a day with a chance of {chance:.1f} %", guesses),
    Claim("docs/spec/stern-proof.md", "{default:.0f} kB on average at the default set", proofs),
    Claim("docs/attacks.md", "copies cost {low:.1f} to {high:.1f} points", soft_labels),
    Claim("docs/attacks.md", "are read at {least:.1f} deviations and more", soft_labels),
    Claim("docs/attacks.md", "students of twenty epochs {pairs_word} of {of_word} are traced", soft_labels),
    Claim(
        "docs/attacks.md",
        "two averaged copies, ten epochs, CIFAR-10 | {low:.1f} to {high:.1f} | {below} point below",
        short_pairs,
    ),
    Claim("docs/attacks.md", "({above} points above their copies)", short_pairs),
    Claim("docs/attacks.md", "are traced, on CIFAR-10 all {cifar} (", pairs),
    Claim("docs/attacks.md", "above their copies), on the simulated GNSS data {gnss}.", pairs),
    Claim("docs/attacks.md", "4,000 images, CIFAR-10 | {deviations:.1f} | {below} points below", few_images),
    Claim(
        "docs/attacks.md", "without the head | {low:.1f} to {high:.1f} | {least} points and more", headless
    ),
    Claim(
        "docs/attacks.md",
        "simulated GNSS data | {scores} | {least} to {most} points below its copy",
        distances,
    ),
    Claim("docs/attacks.md", "(60 episodes; {low:.0f} to {high:.0f} points below", papers_copies),
    Claim(
        "docs/attacks.md",
        "{leads} of its three students of 34 layers on CIFAR-10 score {scores}",
        papers_copies,
    ),
    Claim("docs/threat-model.md", "It pays: {least} to {most} points below its copy", headless),
    Claim("docs/threat-model.md", "stays a good embedding, {least} to {most} points below", distances),
    Claim(
        "docs/tail-certificates.md",
        "{named} of {keys:,} did ({rate:.1f} %), over the {suspects} suspects",
        innocents,
    ),
    Claim("docs/federation.md", "accuracy fell from 71.4 % to {accuracy:.1f} %", raw_push),
    Claim("docs/adr/0004-centred-identity-marks.md", "seed 42) |gamma| = {norm:.1f}", raw_push),
    Claim("docs/adr/0004-centred-identity-marks.md", "accuracy {accuracy:.1f} % instead of 71.4 %", raw_push),
    Claim("docs/adr/0010-a-push-before-the-papers-hinge.md", "(|gamma| = {norm:.1f} on CIFAR-10", raw_push),
    Claim(
        "docs/adr/0009-what-scores-say-beyond-the-shared-model.md",
        "the weakest of {runs_word} soft-label students, now {outside:.1f}.",
        soft_labels,
    ),
    Claim("docs/adr/0002-compact-stern-proofs.md", "the default set a proof has {default:.0f} kB", proofs),
    Claim("docs/adr/0002-compact-stern-proofs.md", "A proof has {paper:.0f} kB", proofs),
    Claim("docs/adr/0007-promised-seeds.md", "A request has a proof of {default:.0f} kB", proofs),
    Claim(
        "docs/registry.md", "each of {places:,} places (`init --places`) and each of {releases}", constants
    ),
    Claim("docs/spec/derivation.md", "(count at most {tree:,})", constants),
    Claim("docs/spec/derivation.md", "exactly these fields, at most {request:,} bytes", constants),
    Claim("docs/spec/derivation.md", "base64, at most {proof:,} bytes", constants),
    Claim("docs/spec/evidence.md", "At most {evidence} MiB", constants),
    Claim("docs/dispatch.md", "refused once in about {once_in:,} times", constants),
    Claim("docs/dispatch.md", "the first stage of a budget of {budget}", constants),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.text[:40]}")
def test_numbers_in_prose_are_those_of_their_source(claim: Claim) -> None:
    page = " ".join((ROOT / claim.page).read_text().split())
    assert claim.text.format(**claim.facts()) in page


def test_a_point_below_their_copies_is_what_short_pairs_are() -> None:
    assert short_pairs()["below"] == "one"
    assert distances()["cifar"] == 3
