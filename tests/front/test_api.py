"""The names that scripts outside the project rely on, used as they would use them."""

import inspect
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zktrace
from zktrace.errors import EvidenceRejected, InputError, MalformedEvidence, Refused, WeakParameters
from zktrace.front.given import as_budget, as_state
from zktrace.models import model_digest, open_model
from zktrace.registry.stores.sql import SqlStore

NAMES = ("alpha", "bravo", "charlie")


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = {"conv.weight": rng.normal(size=(64, 12, 3, 3)).astype(np.float32)}
    for layer in range(12):
        arrays[f"bn{layer}.weight"] = rng.normal(1, 0.1, 64).astype(np.float32)
        arrays[f"bn{layer}.running_var"] = np.ones(64, np.float32)
    return arrays


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> zktrace.Workspace:
    made = zktrace.Workspace.create(tmp_path_factory.mktemp("w") / "op", title="a federation", budget="1/10")
    for name in NAMES:
        made.enrol(name, zktrace.Credential.new(name).request(made.setup))
    assert made.release(model()).carriers == ("spread",)  # unless told otherwise
    return made


def test_the_whole_of_it(home: zktrace.Workspace, tmp_path: Path) -> None:
    copy = home.dispatch("bravo")
    assert model_digest(as_state(copy.arrays)) == copy.digest
    path = copy.save(tmp_path / "copy.safetensors")
    assert model_digest(open_model(path)) == copy.digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Refused, match="exists"):
        copy.save(path)
    for suspect in (path, str(path), dict(copy.arrays)):
        case = home.trace(suspect, budget="1/1000000")
        assert (str(case.verdict), case.named) == ("certified-attribute", ("bravo",))
        assert case.path is not None
        for evidence in (case.evidence, case.evidence.to_bytes(), case.path, str(case.path)):
            found = zktrace.judge(evidence, head=home.head, suspect=suspect, shared=model())
            assert isinstance(found, zktrace.Judgement)
            assert found.named == ("bravo",)
            assert any("values of the suspect read again" in fact for fact in found.steps[4].checked)
        assert zktrace.judge(case.evidence, head=home.head.to_text()).named == ("bravo",)
    page = case.report(tmp_path / "case.html")
    assert "bravo" in page.read_text()
    with pytest.raises(Refused, match="exists"):
        case.report(page)
    with pytest.raises(EvidenceRejected):
        zktrace.judge(case.evidence, head=home.head, suspect=home.dispatch("alpha").arrays)
    with pytest.raises(MalformedEvidence):
        zktrace.judge(b"{}", head=home.head)


def test_a_workspace_is_opened_again(home: zktrace.Workspace) -> None:
    again = zktrace.Workspace.open(home.root)
    assert again.head == home.head
    assert again.setup == home.setup
    assert again.dispatch("alpha").digest == home.dispatch("alpha", "r1").digest


def test_a_stranger_is_nobody(home: zktrace.Workspace) -> None:
    case = home.trace(model(5), budget=0.001)
    assert case.named == ()
    assert zktrace.judge(case.evidence, head=home.head).named == ()


def test_a_trace_asks_the_database_seven_times(
    home: zktrace.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new, the plan, the enrolment of the named, the verdict, and the entries that evidence shows.

    Before each of the two that are written, what is new is asked outside of the lock that others wait for.
    """
    suspect, asked = home.dispatch("charlie").arrays, []
    for name in ("read", "pick", "transaction"):
        honest = getattr(SqlStore, name)

        def counted(self: SqlStore, *given: Any, _name: str = name, _honest: Any = honest) -> Any:
            asked.append(_name)
            return _honest(self, *given)

        monkeypatch.setattr(SqlStore, name, counted)
    home.trace(suspect)
    assert asked == ["read", "read", "transaction", "pick", "read", "transaction", "pick"]


def test_credentials_are_files(tmp_path: Path) -> None:
    made = zktrace.Credential.new("delta")
    path = made.save(tmp_path)
    assert path == tmp_path / "delta.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = zktrace.Credential.load(path)
    assert (again.name, again.public.to_bytes()) == ("delta", made.public.to_bytes())
    with pytest.raises(Refused):
        made.save(tmp_path)
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "delta.pub").write_bytes(b"")
    with pytest.raises(Refused):
        made.save(tmp_path / "only")
    assert not (tmp_path / "only" / "delta.key").exists()
    with pytest.raises(InputError, match="no station name"):
        zktrace.Credential.new("a/b")
    with pytest.raises(WeakParameters):
        zktrace.Credential.new("weak", params="test-128-64-16")


def test_a_request_is_a_file_too(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="files", carriers=["weight"])
    request = zktrace.Credential.new("alpha").request(home.setup)
    path = tmp_path / "alpha.json"
    path.write_bytes(request.to_bytes() + b"\n")
    assert home.enrol("alpha", path) == 1
    other = zktrace.Credential.new("bravo")
    assert home.enrol("bravo", other.request(home.offer).to_bytes()) == 2


def test_models_come_as_they_are() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "c": torch.tensor(3),
    }
    found = as_state(state)
    assert {each.name: each.dtype for each in found.tensors()} == {
        "a": "float32",
        "b": "bfloat16",
        "c": "int64",
    }
    assert found["b"].tolist() == [1.5, -2.0]
    assert as_state(found) is found
    for wrong in (7, {1: np.ones(2)}, {"a": "text"}):
        with pytest.raises(InputError):
            as_state(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["1/100", "0.01", "1e-2", 0.01, Fraction(1, 100)])
def test_budgets_are_what_they_say(given: Any) -> None:
    assert as_budget(given) == Fraction(1, 100)


def test_what_cannot_be_is_an_error_of_ours(home: zktrace.Workspace) -> None:
    for wrong in ("much", "1/0", "2", "0"):
        with pytest.raises(InputError):
            home.trace(model(), budget=wrong)
    with pytest.raises(InputError, match="one of them"):
        home.trace()
    with pytest.raises(Refused, match="no release"):
        home.trace(model(), release="r9")
    with pytest.raises(Refused, match="no station"):
        home.dispatch("nobody")
    with pytest.raises(InputError, match="trained"):
        home.release(model(), carriers=["feature"])
    for short in (0, 127, {"spread": 64}):
        with pytest.raises(InputError, match="a judge asks for 128"):
            home.release(model(), length=short)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="do not carry it"):
        home.release(model(), length={"weight": 256})
    with pytest.raises(Refused, match="nothing that answers"):
        home.trace(scores=np.ones((3, 3)))


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import sys, zktrace; print(dir(zktrace)); zktrace.Error; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert ran.splitlines()[-1] == "False"
    assert all(repr(name) in ran for name in zktrace.__all__)
    with pytest.raises(AttributeError):
        zktrace.nothing  # noqa: B018


def test_a_judge_needs_neither_torch_nor_a_database() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['sqlalchemy'] = None\n"
        "import zktrace; zktrace.judge; zktrace.Policy; zktrace.Credential; print('ok')"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "ok\n"


def test_kinds_that_are_not_taken_are_errors_of_ours(home: zktrace.Workspace, tmp_path: Path) -> None:
    evidence = home.trace(model(3)).evidence
    alpha = zktrace.Credential.new("alpha")
    calls: list[Callable[[Any], object]] = [
        home.trace,
        lambda x: home.trace(model(), release=x),
        lambda x: home.trace(scores=x),
        lambda x: home.dispatch("alpha", x),
        home.dispatch,
        home.release,
        lambda x: home.release(model(), pool=x),
        lambda x: home.release(model(), length=x),
        lambda x: home.release(model(), length={"spread": x}),
        lambda x: home.enrol("delta", x),
        lambda x: home.enrol(x, alpha.request(home.setup)),
        zktrace.Workspace.open,
        lambda x: zktrace.Workspace.create(x, title="t"),
        zktrace.Credential.new,
        alpha.request,
        lambda x: zktrace.judge(x, head=home.head),
        lambda x: zktrace.judge(evidence, head=x),
        lambda x: zktrace.judge(evidence, head=home.head, scores=x),
        lambda x: zktrace.judge(evidence, head=home.head, policy=x),
        lambda x: zktrace.judge(evidence, head=home.head, suspect=x),
        lambda x: zktrace.Policy(max_budget=x),
    ]
    for call in calls:
        for wrong in (5, [], 2.5j, object()):
            with pytest.raises(zktrace.Error):
                call(wrong)
    with pytest.raises(InputError, match="one carrier or more"):
        home.trace(model(), carriers=[])
    assert zktrace.Policy(max_budget="1/500").max_budget == Fraction(1, 500)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_tensors_that_numpy_does_not_have_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for tensor in (
        torch.zeros(3, dtype=torch.float8_e4m3fn),
        torch.zeros(3, device="meta"),
        torch.eye(3).to_sparse(),
    ):
        with pytest.raises(InputError):
            as_state({"a": tensor})


def test_a_release_belongs_to_its_workspace(home: zktrace.Workspace, tmp_path: Path) -> None:
    other = zktrace.Workspace.create(tmp_path / "other", title="another", carriers=["weight"])
    other.enrol("alpha", zktrace.Credential.new("alpha").request(other.setup))
    own, foreign = other.release(model(1)), home.opened("r1")
    assert other.dispatch("alpha", own).release == "r1"
    for call in (lambda: other.dispatch("alpha", foreign), lambda: other.trace(model(), release=foreign)):
        with pytest.raises(Refused, match="another workspace"):
            call()
    with pytest.raises(InputError, match="code key"):
        pickle.dumps(own)
    assert repr(own) == "<OpenRelease r1: weight, informed>"


def test_a_release_says_how_long_its_codes_are(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="lengths", carriers=["spread", "weight"])
    for given, length in ((200, 200), ({"weight": 300}, 300), (None, 512)):
        release = home.release(model(), carriers=["weight"], length=given)  # type: ignore[arg-type]
        assert (release.layout("weight").length, release.code("weight").length) == (length, length)
    several = home.release(model(), carriers=["spread", "weight"], length={"spread": 128, "weight": 200})
    assert [each.length for each in several.record.layouts] == [128, 200]
    assert [each.length for each in home.release(model(), length=128).record.layouts] == [128]


def test_a_copy_is_the_one_on_record_or_refused(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="copies", carriers=["weight"])
    for name in ("alpha", "bravo"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    home.release(model())
    alpha, bravo = home.dispatch("alpha"), home.dispatch("bravo")
    assert (alpha.weak, home.dispatch("alpha").weak) == ((), None)
    alpha.path.write_bytes(bravo.path.read_bytes())
    with pytest.raises(Refused, match="not the copy of alpha"):
        alpha.save(tmp_path / "alpha.safetensors")
    case = home.trace(bravo.arrays)
    assert repr(case) == "<TracedCase certified-attribute: bravo>"
    assert repr(case.case) == "<Case certified-attribute: bravo>"  # no score of anybody
    shared = home.release_folder("r1") / "shared.safetensors"
    good, spent = shared.read_bytes(), home.registry.ledger().spent
    shared.write_bytes(bravo.path.read_bytes())
    with pytest.raises(Refused, match="not the shared model"):
        home.trace(bravo.arrays)  # an alignment would be fitted on it
    assert home.registry.ledger().spent == spent
    shared.unlink()
    assert home.dispatch("bravo").digest == bravo.digest  # which is there already
    shared.write_bytes(good)


def test_without_a_database_an_operator_is_told_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "import zktrace\n"
        "try: zktrace.Workspace.create(sys.argv[1], title='t')\n"
        "except zktrace.Error as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "op"], check=True, capture_output=True, text=True
    )
    assert "pip install 'zktrace[operator]'" in ran.stdout
    assert not (tmp_path / "op").exists()


PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_page_has_every_name_and_every_parameter() -> None:
    text = PAGE.read_text()
    assert [
        name for name in zktrace.__all__ if f"`{name}" not in text and f"zktrace.{name}" not in text
    ] == []
    for call in (
        zktrace.Workspace.create,
        zktrace.Workspace.enrol,
        zktrace.Workspace.release,
        zktrace.Workspace.dispatch,
        zktrace.Workspace.dispatch_all,
        zktrace.Workspace.trace,
        zktrace.Workspace.rebuild,
        zktrace.judge,
    ):
        line = next(
            line
            for line in text.splitlines()
            if (f".{call.__name__}(" in line and "=, " in line) or f"`.{call.__name__}(" in line
        )
        for name, each in inspect.signature(call).parameters.items():
            if name not in {"self", "cls"} and each.kind is each.KEYWORD_ONLY:
                assert f"{name}=" in line, (call.__name__, name)
