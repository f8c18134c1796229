"""Every format that was ever written is read, verified and judged: samples of each lie beside this file."""

import hashlib
import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.court import Policy, judge
from zktrace.credentials import (
    Binding,
    Component,
    CredentialBinding,
    MessageBinding,
    ModelBinding,
    Proof,
    PublicKey,
    SecretKey,
    verify,
)
from zktrace.derivation.key import CodeKey
from zktrace.errors import InvalidProof
from zktrace.evidence import Evidence
from zktrace.guarding import CopyProof, copy_proof
from zktrace.models import model_digest, open_model
from zktrace.readouts.runs import RunFacts
from zktrace.readouts.scores import read_matrix
from zktrace.registry.export import read_export
from zktrace.registry.log import Extension, Head, ProvenEntry
from zktrace.registry.records import KINDS, EnrolmentRecord
from zktrace.registry.requests import Request, read_offer
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder
from zktrace.releases.queries import Order, picked
from zktrace.report.run_folder import read_run

HERE = Path(__file__).parent
SAMPLES = HERE / "0.2.0"
LIGHT, FULL = SAMPLES / "light", SAMPLES / "full"

# Where a format's name stands in a file, and a sample of it.
FORMATS = {
    "zkt-checkpoint-v1": "run/rounds.safetensors",
    "zkt-code-key-v1": "light/secrets/code.key",
    "zkt-consistency-v1": "registry/since-before.json",
    "zkt-evidence-v1": "evidence/weight-alpha.zkt.json",
    "zkt-head-v1": "heads/light.txt",
    "zkt-inclusion-v1": "registry/inclusion.json",
    "zkt-offer-v1": "offer.txt",
    "zkt-order-v2": "queries/order.json",
    "zkt-registry-v1": "registry/export",
    "zkt-request-v1": "light/requests/alpha.json",
    "zkt-rows-v1": "weight.rows",
    "zkt-run-v1": "run.json",
    "zkt-stern-v1": "credentials/message.proof",
    "zkt-xlpn-key-v1": "credentials/default.key",
    "zkt-xlpn-pub-v1": "credentials/default.pub",
}
# Names that only ever go into a hash: they begin no file.
DOMAINS = {
    "zkt-baseline-v1",
    "zkt-biases-v1",
    "zkt-commitment-v1",
    "zkt-data-v1",
    "zkt-directions-v1",
    "zkt-experiment-v1",
    "zkt-findings-v1",
    "zkt-innocent-law-v1",
    "zkt-key-v1",
    "zkt-login-v1",
    "zkt-model-state-v1",
    "zkt-readout-v1",
    "zkt-record-v1",
    "zkt-release-v1",
    "zkt-row-v1",
    "zkt-scores-v1",
    "zkt-seeds-v1",
    "zkt-stream-v1",
    "zkt-xlpn-v1",
}
# Caches: whatever such a file is like, another version of the program (or of numpy) makes it again.
MADE_AGAIN = {"zkt-gnss-samples-v1", "zkt-ledger-v2"}
# New since the last release: they get samples with the next one.
UNRELEASED = {"zkt-delivery-v1", "zkt-order-labels-v1", "zkt-receipt-v1"}
# Formats without a name of their own.
NAMELESS = (
    "credentials/component.txt",
    "light/registry.db",
    "light/releases/r1/reference-weight.bin",
    "light/zktrace.toml",
    "run/log.jsonl",
    "run/result.json",
    "run/spec.json",
)
RELAXED = Policy(
    min_length=48,
    max_budget=Fraction(1, 10),
    max_total_budget=Fraction(9, 10),
    accept_weak_credentials=True,
)
CASES = {  # evidence -> verdict, named, how the suspect was read, on which carrier
    "weight-alpha": ("certified-attribute", ("alpha",), "identity", "weight"),
    "weight-opposite": ("certified-tamper", ("carol",), "identity", "weight"),
    "weight-unmarked": ("no-certified-evidence", (), None, None),
    "weight-uncertified": ("uncertified-lead", (), None, None),
    "weight-rescaled": ("certified-attribute", ("bravo",), "channels", "weight"),
    "spread-half": ("certified-attribute", ("carol",), "identity", "spread"),
    "spread-broadcast": ("certified-attribute", ("carol",), "identity", "spread"),
    "feature-copy": ("certified-attribute", ("bravo",), "identity", "feature"),
    "output-copy": ("certified-attribute", ("bravo",), "identity", "output"),
    "output-scores": ("certified-attribute", ("bravo",), "identity", "output"),
    "paper-rule": ("certified-attribute", ("carol",), "identity", "weight"),
}


def head_of(name: str) -> Head:
    return Head.from_text((SAMPLES / "heads" / f"{name}.txt").read_text().strip())


def evidence_of(name: str) -> bytes:
    return (SAMPLES / "evidence" / f"{name}.zkt.json").read_bytes()


def export() -> list[bytes]:
    entries, _ = read_export(SAMPLES / "registry" / "export")
    return [each.to_bytes() for each in entries]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A copy of `light/` that may be written to, with the modes that git does not keep."""
    return copied(LIGHT, tmp_path)


def copied(workspace: Path, folder: Path) -> Home:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    root = shutil.copytree(workspace, folder / workspace.name)
    for each in (root, *root.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    return Home.open(root)


# ── the samples themselves ──────────────────────────────────────────────────────────────────────────────────


def test_no_sample_changed_by_accident() -> None:
    stated = dict(reversed(line.split("  ")) for line in (HERE / "0.2.0.sha256").read_text().splitlines())
    found = {
        each.relative_to(SAMPLES).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in SAMPLES.rglob("*")
        if each.is_file()
    }
    assert found == stated


def test_every_format_has_a_sample() -> None:
    """A new format, or a new version of one, needs a sample; a name that begins no file is listed too."""
    texts = [path.read_text() for path in Path(zktrace.__file__).parent.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"zkt-[a-z0-9-]+-v[0-9]+", text)}
    assert used == set(FORMATS) | DOMAINS | MADE_AGAIN | UNRELEASED
    for name, sample in FORMATS.items():
        assert name.encode() in (SAMPLES / sample).read_bytes(), sample
    for sample in NAMELESS:
        assert (SAMPLES / sample).stat().st_size > 0


def test_samples_tell_nothing_of_where_they_were_made() -> None:
    for path in SAMPLES.rglob("*"):
        if path.is_file():
            assert not re.search(rb"/(tmp|home|root|work|Users)/", path.read_bytes()), path


# ── credentials ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("label", "params"),
    [("default", "xlpn-1280-640-132"), ("paper", "xlpn-1024-512-128"), ("test", "test-128-64-16")],
)
def test_keys(label: str, params: str) -> None:
    folder = SAMPLES / "credentials"
    data = (folder / f"{label}.key").read_bytes()
    key, public = SecretKey.from_bytes(data), PublicKey.from_bytes((folder / f"{label}.pub").read_bytes())
    assert key.params.name == params
    assert key.public.to_bytes() == public.to_bytes() == (folder / f"{label}.pub").read_bytes()
    assert key.to_bytes() == data


def bindings() -> dict[str, Binding]:
    folder = SAMPLES / "credentials"
    return {
        "default-credential": CredentialBinding(),
        "paper-credential": CredentialBinding(),
        "message": MessageBinding.of_file(folder / "message.txt"),
        "model": ModelBinding(
            state_digest=model_digest(open_model(folder / "model.safetensors")),
            component=Component.from_file(folder / "component.txt"),
        ),
    }


@pytest.mark.parametrize("name", ["default-credential", "paper-credential", "message", "model"])
def test_proofs(name: str) -> None:
    folder = SAMPLES / "credentials"
    label = "paper" if name.startswith("paper") else "default"
    public = PublicKey.from_bytes((folder / f"{label}.pub").read_bytes())
    data = (folder / f"{name}.proof").read_bytes()
    proof = Proof.from_bytes(data)
    assert proof.to_bytes() == data
    verify(public, bindings()[name], proof, allow_weak_params=label == "paper")
    with pytest.raises(InvalidProof):
        verify(public, MessageBinding.of(b"another"), proof, allow_weak_params=True)


@pytest.mark.parametrize("station", ["alpha", "bravo", "carol"])
def test_requests_are_those_on_record(station: str) -> None:
    entries, _ = read_export(SAMPLES / "registry" / "export")
    enrolments = [each.record for each in entries if isinstance(each.record, EnrolmentRecord)]
    (record,) = (each for each in enrolments if each.station == station)
    request = Request.from_bytes((LIGHT / "requests" / f"{station}.json").read_bytes())
    assert request.digest() == record.request
    request.verify(request.offer, allow_weak_params=station != "alpha")
    offered = read_offer((SAMPLES / "offer.txt").read_text())
    assert (request.offer == offered) == (station != "carol")  # who came by a later reservation


# ── the registry ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_log_of_an_auditor() -> None:
    folder = SAMPLES / "registry"
    entries, head = read_export(folder / "export", extends=head_of("before"))
    assert head == head_of("light")
    assert {each.record.kind for each in entries} == set(KINDS) - {"receipt"}  # which came after 0.2.0
    ProvenEntry.from_bytes((folder / "inclusion.json").read_bytes()).verify(head)
    for old in ("before", "weight-alpha"):
        Extension.from_bytes((folder / f"since-{old}.json").read_bytes()).verify(head_of(old), head)


def test_a_copy_of_a_broadcast_is_proved(home: Home) -> None:
    release = OpenRelease.of(home, "federation")
    ((_, record),) = release.ledger.broadcasts("federation")
    proof = CopyProof.from_bytes((SAMPLES / "registry" / "copy.json").read_bytes())
    assert proof == copy_proof(release, 0, "carol")
    assert proof.holds(record)
    assert proof.handed.copy == model_digest(open_model(SAMPLES / "suspects" / "broadcast.safetensors"))


@pytest.mark.parametrize(("stem", "name"), [("broadcast", "federation"), ("half", "r2")])
def test_a_suspect_is_read_again_in_all_its_weights(home: Home, stem: str, name: str) -> None:
    release = OpenRelease.of(home, name)
    found = judge(
        evidence_of(f"spread-{stem}"),
        head=head_of(f"spread-{stem}"),
        policy=Policy(
            require_suspect=True,
            require_readout=True,
            require_shared=True,
            max_total_budget=RELAXED.max_total_budget,
            accept_weak_credentials=True,
        ),
        suspect=open_model(SAMPLES / "suspects" / f"{stem}.safetensors"),
        shared=release.shared,
    )
    assert found.named == ("carol",)


def test_the_workspace_of_an_operator(home: Home) -> None:
    assert home.registry.verify(extends=head_of("before")) == head_of("light")
    assert home.custody.key == CodeKey.from_bytes((LIGHT / "secrets" / "code.key").read_bytes())
    assert home.request_of("alpha") is not None


# ── evidence ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_sample_of_evidence_is_judged() -> None:
    assert {each.name.removesuffix(".zkt.json") for each in (SAMPLES / "evidence").iterdir()} == set(CASES)
    assert {verdict for verdict, *_ in CASES.values()} == {
        "certified-attribute",
        "certified-tamper",
        "uncertified-lead",
        "no-certified-evidence",
    }
    assert {carrier for *_, carrier in CASES.values()} == {"weight", "spread", "feature", "output", None}


@pytest.mark.parametrize("name", CASES)
def test_evidence_is_upheld(name: str) -> None:
    verdict, named, alignment, carrier = CASES[name]
    found = judge(evidence_of(name), head=head_of(name), policy=RELAXED)
    assert (found.verdict, found.named) == (verdict, named)
    parsed = Evidence.from_bytes(evidence_of(name))
    assert parsed.to_bytes() == evidence_of(name)
    assert tuple(each.carrier for each in parsed.carriers) == (() if carrier is None else (carrier,))
    assert alignment is None or any(f", {alignment}" in fact for fact in found.steps[3].checked)


@pytest.mark.parametrize("stem", ["alpha", "opposite", "unmarked"])
def test_evidence_is_upheld_with_all_a_judge_can_have(stem: str) -> None:
    """Suspect, shared model, registry, a head from before and a later one."""
    strict = Policy(
        require_suspect=True,
        require_readout=stem != "unmarked",
        require_shared=True,
        require_registry=True,
        require_before=True,
        accept_weak_credentials=stem == "opposite",
    )
    found = judge(
        evidence_of(f"weight-{stem}"),
        head=head_of("light"),
        policy=strict,
        suspect=open_model(SAMPLES / "suspects" / f"{stem}.safetensors"),
        shared=open_model(LIGHT / "releases" / "r1" / "shared.safetensors"),
        export=export(),
        before=head_of("before"),
    )
    assert (found.verdict, found.named) == CASES[f"weight-{stem}"][:2]
    assert found.total.recounted


def test_evidence_under_an_older_head_takes_its_consistency_proof() -> None:
    proof = Extension.from_bytes((SAMPLES / "registry" / "since-weight-alpha.json").read_bytes())
    found = judge(evidence_of("weight-alpha"), head=head_of("light"), policy=Policy(), extensions=[proof])
    assert found.named == ("alpha",)


def test_scores_of_a_queried_suspect() -> None:
    scores = read_matrix(SAMPLES / "queries" / "scores.npz")
    found = judge(evidence_of("output-scores"), head=head_of("output-scores"), policy=RELAXED, scores=scores)
    assert any("values of the suspect read again" in fact for fact in found.steps[4].checked)


@pytest.mark.parametrize("carrier", ["feature", "output"])
def test_a_network_is_read_again_by_a_judge(carrier: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")

    release = FULL / "releases" / "r1"
    found = judge(
        evidence_of(f"{carrier}-copy"),
        head=head_of(f"{carrier}-copy"),
        policy=replace(RELAXED, require_readout=True),
        suspect=open_model(FULL / "copies" / "r1" / "bravo.safetensors"),
        shared=open_model(release / "shared.safetensors"),
        probes=[open_model(release / f"{name}.safetensors") for name in ("probes", "queries")],
    )
    assert found.named == ("bravo",)


# ── releases, copies, rows ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workspace", [LIGHT, FULL], ids=["light", "full"])
def test_release_and_copies_are_those_on_record(workspace: Path, tmp_path: Path) -> None:
    home = copied(workspace, tmp_path)

    folder, ledger = ReleaseFolder(path=home.release_folder("r1")), home.registry.ledger()
    record = ledger.release("r1")
    assert model_digest(folder.shared()) == record.model
    for layout in record.layouts:
        assert folder.reference(layout) is not None
        if layout.carrier == "feature":
            assert (folder.probes(layout) or {})["probes"].shape == (48, 1, 12, 12)
        if layout.carrier == "output":
            assert (folder.probes(layout) or {})["probes"].shape == (96, 1, 12, 12)
            assert len(folder.pool().images) == 220
    copies = {(each.release, each.station): each.copy for _, each in ledger.dispatches}
    kept = {each.release for _, each in ledger.dispatches}
    files = {(name, each.stem) for name in kept for each in home.copies_folder(name).iterdir()}
    assert files == set(copies)
    for (name, station), digest in copies.items():
        assert model_digest(open_model(home.copy_path(name, station))) == digest


def test_a_copy_is_traced_anew(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from zktrace.cli.app import run

    monkeypatch.chdir(home.root)
    for name in ("carol", "alpha"):
        assert run(["trace", str(home.copy_path("r1", name)), "--release", "r1", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [each["station"] for each in found["named"]] == [name]


def test_a_copy_carries_its_rows(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    home = copied(FULL, tmp_path)
    from zktrace.codes import soft, sums

    copy = open_model(home.copy_path("r1", "bravo"))
    for carrier in ("weight", "feature", "output"):
        code = OpenRelease.of(home, "r1").code(carrier)
        found = soft(OpenRelease.of(home, "r1").reader(carrier).read(copy), code.biases)
        scores = found.scores_float(sums(code.rows(range(3)), found)) / np.sqrt(code.length)
        assert scores.argmax() == 1
        assert scores[1] > 3


def test_the_cache_of_rows(home: Home) -> None:
    from zktrace.codes.cache import RowCache

    cache = RowCache.open(SAMPLES / "weight.rows", OpenRelease.of(home, "r1").code("weight"))
    cache.check(range(3))
    assert cache.count == 3


def test_an_order_finds_the_probes_among_the_answers() -> None:

    data = (SAMPLES / "queries" / "order.json").read_bytes()
    order = Order.from_bytes(data)
    assert (order.to_bytes(), order.release) == (data, "r1")
    answers = read_matrix(SAMPLES / "queries" / "answers.safetensors")
    assert np.array_equal(picked(answers, order), read_matrix(SAMPLES / "queries" / "scores.npz"))


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_folder() -> None:
    folder = SAMPLES / "run"
    facts = RunFacts.beside(folder / "model.safetensors")
    assert facts is not None
    assert (facts.stations, facts.rows, facts.bits) == (("alpha", "bravo", "carol"), (0, 1, 2), 16)
    found = read_run(folder)
    assert (len(found.rounds), len(found.epochs), len(found.agreement)) == (2, 1, 3)


def test_checkpoints() -> None:
    from zktrace.learning.checkpoints import load_checkpoint

    folder = SAMPLES / "run"
    rounds = load_checkpoint(folder / "rounds.safetensors", kind="federation")
    assert len(rounds.facts["log"]) == 2
    model = open_model(folder / "model.safetensors")
    saved = rounds.group("model")
    assert saved.keys() == set(model)
    assert all(np.array_equal(saved[name], model[name]) for name in model)
    before = load_checkpoint(folder / "pretraining.safetensors", kind="pre-training")
    assert before.group("momentum")
    assert before.group("model").keys() == set(model)


def test_the_run_file_is_that_of_the_run() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.federation.flower.runfile import read_run_file

    found = read_run_file(SAMPLES / "run.json")
    assert found.spec.facts() == json.loads((SAMPLES / "run" / "spec.json").read_text())
    assert len(found.nodes) == 3
    assert found.to_bytes() == (SAMPLES / "run.json").read_bytes()
