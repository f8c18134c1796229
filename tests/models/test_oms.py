"""The digest of OpenSSF Model Signing: golden statements of its project, on files as its tests make them."""

import json
from pathlib import Path
from typing import Any

import pytest

from zktrace.errors import LimitExceeded, Refused
from zktrace.models import Limits
from zktrace.models.oms import file_digests, oms_digest, oms_root

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "oms.json").read_text())


def resources(name: str) -> dict[str, bytes]:
    return {each["name"]: bytes.fromhex(each["digest"]) for each in GOLDEN[name]["predicate"]["resources"]}


def root(name: str) -> str:
    (subject,) = GOLDEN[name]["subject"]
    return str(subject["digest"]["sha256"])


def made(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


SAMPLE = {f"d{i}/f{i}{j}": f"This is file f{i}{j} in d{i}." for i in range(2) for j in range(3)} | {
    f"f{i}": f"This is file f{i} in root." for i in range(4)
}
DEEP = {f"d0/d1/d2/d3/d4/f{i}": f"This is file f{i}." for i in range(4)}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_digest_of_a_golden_statement_follows_from_its_resources(name: str) -> None:
    given = resources(name)
    assert oms_root(given).hex() == root(name)
    assert oms_root(dict(reversed(given.items()))).hex() == root(name)


@pytest.mark.parametrize(("name", "texts"), [("sample_model_folder", SAMPLE), ("deep_model_folder", DEEP)])
def test_files_on_the_disk_have_the_digests_of_the_golden_statement(
    name: str, texts: dict[str, str], tmp_path: Path
) -> None:
    folder = made(tmp_path, texts)
    assert file_digests(folder) == resources(name)
    assert oms_digest(folder).hex() == root(name)


def test_a_file_alone_is_a_model_with_one_resource(tmp_path: Path) -> None:
    folder = made(tmp_path, {"only": "text"})
    assert file_digests(folder / "only").keys() == {"."}
    assert oms_digest(folder / "only") == oms_digest(folder)
    before = oms_digest(folder / "only")
    made(tmp_path, {"only": "Text"})
    assert oms_digest(folder / "only") != before


def test_what_is_in_a_folder_stands_together(tmp_path: Path) -> None:
    """As paths are compared, part by part; as texts "a-b" would stand before "a/c"."""
    found = file_digests(made(tmp_path, {"a/c": "1", "a-b": "2", "a.d": "3", "Z": "4"}))
    ordered = [found[name] for name in ("Z", "a/c", "a-b", "a.d")]
    assert oms_root(found) == oms_root({str(place): each for place, each in enumerate(ordered)})


def test_what_belongs_to_git_is_no_part_of_a_model(tmp_path: Path) -> None:
    folder = made(tmp_path, SAMPLE)
    made(tmp_path, {".git/HEAD": "x", ".gitignore": "x", ".gitattributes": "x", ".github/a/b": "x"})
    assert oms_digest(folder).hex() == root("sample_model_folder")
    made(tmp_path, {"d0/.gitignore": "x"})
    assert oms_digest(folder).hex() != root("sample_model_folder")


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no file"):
        oms_digest(made(tmp_path / "empty", {".gitignore": "x"}))
    with pytest.raises(Refused):
        oms_digest(tmp_path / "nothing")
    linked = made(tmp_path / "linked", {"a": "x"})
    (linked / "b").symlink_to(linked / "a")
    with pytest.raises(Refused, match="link"):
        oms_digest(linked)
    away = made(tmp_path / "away", {"a": "x"})
    (away / "folder").symlink_to(linked, target_is_directory=True)
    with pytest.raises(Refused, match="link"):
        oms_digest(away)
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "a\udcff").write_text("x")
    with pytest.raises(Refused, match="UTF-8"):
        oms_digest(tmp_path / "bytes")


def test_a_model_is_bounded_over_all_its_files(tmp_path: Path) -> None:
    folder = made(tmp_path, {"a": "12345", "b": "12345"})
    assert oms_digest(folder, Limits(max_file_bytes=10))
    with pytest.raises(LimitExceeded):
        oms_digest(folder, Limits(max_file_bytes=9))
    made(tmp_path, {"/".join("d" * 40): "x"})
    with pytest.raises(LimitExceeded):
        oms_digest(folder)
