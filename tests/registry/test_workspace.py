"""Workspaces: made whole, found from within, and closed to others."""

import shutil
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from registry.postgres import Server
from registry.small import LENGTHS, SHAPES, request
from zktrace.codes import CodeKey
from zktrace.derivation.key import Use
from zktrace.errors import InputError, InvalidProof, MalformedFile, Refused, Rejected
from zktrace.registry import enrolling
from zktrace.registry.records import PLACE, RELEASE
from zktrace.registry.workspace import Home


def make(root: Path, **more: object) -> Home:
    return Home.create(root, title="a federation", carriers=SHAPES, **more)  # type: ignore[arg-type]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_workspace_has_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    made = make(tmp_path / "deep" / "ws")
    found = {str(each.relative_to(made.root)) for each in made.root.rglob("*")}
    folders = {"secrets", "requests", "releases", "copies", "cases"}
    assert found == folders | {"zktrace.toml", "registry.db", "secrets/code.key"}
    assert {mode(made.root / each) for each in folders} == {0o700}
    assert mode(made.root / "secrets" / "code.key") == 0o600
    assert mode(made.root / "zktrace.toml") == 0o600
    again = Home.open(made.root)
    assert again.registry.head() == made.registry.head()
    assert again.custody == made.custody
    assert again.registry.ledger().remaining == Fraction(1, 100)


def test_secrets_are_nowhere_but_in_the_key_file(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    made.enrol("alpha", request("alpha", made.offer), allow_weak_params=True)
    code = made.custody.code("weight", made.registry.ledger().claims, length=LENGTHS["weight"], law="tardos")
    secrets = [
        made.custody.key.secret,
        code.bias_seed,
        code.row_seed(0),
        code.rows([0]).tobytes(),
        made.custody.seed(RELEASE, "weight", 0),
    ]
    for path in made.root.rglob("*"):
        if path.is_file() and path.name != "code.key":
            data = path.read_bytes()
            assert not any(each in data or each.hex().encode() in data for each in secrets), path


def test_two_workspaces_share_no_secret(tmp_path: Path) -> None:
    assert make(tmp_path / "a").custody.key != make(tmp_path / "b").custody.key


def test_it_is_found_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path / "ws")
    deep = made.root / "releases" / "v1" / "x"
    deep.mkdir(parents=True)
    assert Home.find(deep).root == made.root
    monkeypatch.chdir(deep)
    assert Home.find().root == made.root
    with pytest.raises(Refused, match="no workspace here or above"):
        Home.find(tmp_path)
    with pytest.raises(Refused, match="is no workspace"):
        Home.open(deep)


def test_it_is_made_in_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")
    with pytest.raises(Refused, match="is a workspace already"):
        make(tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(Refused, match="is not empty"):
        make(tmp_path / "full")
    assert [each.name for each in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    with pytest.raises(Refused, match="cannot be made"):
        make(tmp_path / "full" / "thesis.txt")


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": Fraction(0)},
        {"budget": Fraction(1)},
        {"identity_bits": 0},
        {"carriers": ()},
        {"carriers": ("sound",)},
        {"carriers": ("weight", "weight")},
        {"title": ""},
        {"title": "two\nlines"},
        {"url": "sqlite:///ä.db"},
    ],
)
def test_what_cannot_be_set_up_makes_nothing(tmp_path: Path, wrong: dict[str, object]) -> None:
    wanted: dict[str, object] = {"title": "a federation", "carriers": SHAPES} | wrong
    with pytest.raises(InputError):
        Home.create(tmp_path / "ws", **wanted)  # type: ignore[arg-type]
    assert not (tmp_path / "ws").exists()


def test_an_interrupted_attempt_is_finished_with_the_same_key(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    key, head = made.custody.key, made.registry.head()
    interrupted(made)
    with pytest.raises(Refused):
        Home.open(made.root)
    again = make(tmp_path / "ws")
    assert again.custody.key == key
    assert again.registry.head() == head
    assert not (made.root / ".zktrace-init").exists()


def test_an_interrupted_attempt_is_not_finished_as_another(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    interrupted(made)
    with pytest.raises(Refused, match="another registry already"):
        make(tmp_path / "ws", budget=Fraction(1, 2))


def test_a_code_key_that_is_in_use_makes_no_second_registry(tmp_path: Path, server: Server) -> None:
    """Else looks in one would be missing from the log of the other."""
    made = make(tmp_path / "ws")
    twin = tmp_path / "twin"
    (twin / "secrets").mkdir(parents=True)
    (twin / ".zktrace-init").touch()
    shutil.copy2(made.code_key_path, twin / "secrets")
    for url in (None, server.new_database()):
        with pytest.raises(Refused, match="not made here"):
            make(twin, url=url)
    assert not (twin / "zktrace.toml").exists()


def interrupted(made: Home) -> None:
    """As if the process had been killed just before the settings were written."""
    (made.root / "zktrace.toml").unlink()
    fingerprint = made.custody.key.subkey(Use.FINGERPRINT).hex()
    (made.root / ".zktrace-init").write_text(f"{fingerprint}\n")


def test_a_request_is_kept_for_the_judge(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    asked = request("alpha", made.offer)
    assert made.enrol("alpha", asked, allow_weak_params=True) == 1
    assert made.request_of("alpha") == asked
    with pytest.raises(Refused, match="enrolled already"):
        made.enrol("alpha", request("beta", made.offer), allow_weak_params=True)
    assert made.request_of("alpha") == asked
    with pytest.raises(Refused, match="enrolled already, for alpha"):
        made.enrol("beta", asked, allow_weak_params=True)
    assert made.request_of("beta") is None


def test_two_who_enrol_one_name_lose_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second writes its request between the first's look at the log and its entry there."""
    made, other = make(tmp_path / "ws"), Home.open(tmp_path / "ws")
    add, offer = made.registry.add, made.offer

    def meanwhile(source: Any) -> int:
        other.enrol("alpha", request("beta", offer), allow_weak_params=True)
        return add(source)

    monkeypatch.setattr(made.registry, "add", meanwhile)
    with pytest.raises(Refused, match="enrolled already"):
        made.enrol("alpha", request("alpha", offer), allow_weak_params=True)
    assert made.request_of("alpha") == request("beta", offer)
    assert made.registry.ledger().station("alpha").enrolment.request == request("beta", offer).digest()
    assert [each.name for each in (made.root / "requests").iterdir()] == ["alpha.json"]


def test_a_request_has_its_name_where_somebody_died_before_it_got_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path / "ws")
    asked = request("alpha", made.offer)
    with monkeypatch.context() as killed:
        killed.setattr(enrolling, "_named", lambda *_: None)
        made.enrol("alpha", asked, allow_weak_params=True)
    assert not made.request_path("alpha").exists()
    assert Home.open(made.root).request_of("alpha") == asked
    assert made.request_path("alpha").is_file()


def test_a_request_is_kept_if_its_entry_came_on_record_after_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path / "ws")
    asked, add = request("alpha", made.offer), made.registry.add

    def lost(source: Any) -> int:
        add(source)
        raise Refused("the database went away at the very end")

    monkeypatch.setattr(made.registry, "add", lost)
    with pytest.raises(Refused, match="went away"):
        made.enrol("alpha", asked, allow_weak_params=True)
    assert made.registry.ledger().by_row == ["alpha"]
    assert made.request_of("alpha") == asked


def test_places_can_be_added(tmp_path: Path) -> None:
    made = make(tmp_path / "ws", places=1)
    first = made.offer
    made.enrol("alpha", request("alpha", first), allow_weak_params=True)
    with pytest.raises(Refused, match="promised for 1 stations"):
        _ = made.offer
    assert made.reserve(PLACE, 3) == 4
    with pytest.raises(InvalidProof, match="it is for the offer"):
        made.enrol("beta", request("beta", first), allow_weak_params=True)
    made.enrol("beta", request("beta", made.offer), allow_weak_params=True)
    assert made.registry.ledger().by_row == ["alpha", "beta"]
    assert made.reserve(RELEASE, 1) == 257


def test_a_database_is_of_one_workspace(tmp_path: Path, server: Server) -> None:
    url = server.new_database()
    made = make(tmp_path / "one", url=url)
    made.enrol("alpha", request("alpha", made.offer), allow_weak_params=True)
    assert Home.open(made.root).registry.verify().size == 2
    assert not (made.root / "registry.db").exists()
    with pytest.raises(Refused, match="another registry already"):
        make(tmp_path / "two", url=url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version = 1",
        'database = "registry.db"',
        'version = 2\ndatabase = "registry.db"',
        'version = true\ndatabase = "registry.db"',
        'version = "1"\ndatabase = "registry.db"',
        "version = 1\ndatabase = 5",
        'version = 1\ndatabase = ""',
        'version = 1\ndatabase = "registry.db"\ncolour = "red"',
        "version = 1\ndatabase = 'postgresql://anna:hunter2@",
        "\xff",
        "a" * 70_000,
    ],
)
def test_settings_are_read_strictly(tmp_path: Path, text: str) -> None:
    (tmp_path / "zktrace.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        Home.open(tmp_path)
    assert "hunter2" not in str(caught.value)


def test_a_database_that_is_gone_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    (made.root / "registry.db").unlink()
    with pytest.raises(Refused, match="the database is not there"):
        Home.open(made.root).registry.ledger()
    assert not (made.root / "registry.db").exists()
    (made.root / "registry.db").touch()
    with pytest.raises(Refused, match="holds no registry"):
        Home.open(made.root).registry.ledger()


def test_a_code_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    made.code_key_path.chmod(0o640)
    with pytest.raises(Refused, match="others can read it"):
        _ = Home.open(made.root).custody


def test_another_code_key_is_rejected(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    made.code_key_path.write_bytes(CodeKey.generate().to_bytes())
    with pytest.raises(Rejected, match="not the one"):
        _ = Home.open(made.root).custody
    made.code_key_path.write_bytes(b"no key")
    with pytest.raises(MalformedFile):
        _ = Home.open(made.root).custody


def test_paths_stay_inside(tmp_path: Path) -> None:
    made = make(tmp_path / "ws")
    assert made.release_folder("v1") == made.root / "releases" / "v1"
    assert made.copy_path("v1", "alpha") == made.root / "copies" / "v1" / "alpha.safetensors"
    for name in ("..", "a/b", "/etc", ""):
        with pytest.raises(Refused):
            made.release_folder(name)
        with pytest.raises(Refused):
            made.copy_path("v1", name)
