"""The row cache: what is written, and every way a file can be wrong."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from support import seeded
from zktrace.codes import Code, CodeKey, RowCache
from zktrace.errors import Error, InputError, MalformedFile, Refused

KEY = CodeKey.generate(entropy=seeded("cache"))
CODE = Code(key=KEY, label="cache", length=75, colluders=2)
OTHER = Code(key=KEY, label="another", length=75, colluders=2)
COUNT = 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RowCache.build(tmp_path / "rows", CODE, COUNT)
    return tmp_path / "rows"


def test_the_file_is_a_header_and_the_rows(path: Path) -> None:
    data = path.read_bytes()
    head = b"zkt-rows-v1\0\0\0\0\0" + CODE.fingerprint + (75).to_bytes(8, "big") + COUNT.to_bytes(8, "big")
    assert len(head) == 64
    assert data == head + CODE.rows(range(COUNT)).tobytes()


def test_only_the_owner_may_read_it_and_nothing_else_is_left(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["rows"]


def test_it_opens_to_the_rows_read_only(path: Path) -> None:
    cache = RowCache.open(path, CODE)
    assert cache.count == COUNT
    assert (cache.rows == CODE.rows(range(COUNT))).all()
    with pytest.raises(ValueError, match="read-only"):
        cache.rows[0, 0] = 1
    cache.check(range(COUNT))
    cache.check([])


def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    RowCache.build(tmp_path / "rows", CODE, 40_000, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(16_384, 40_000), (32_768, 40_000), (40_000, 40_000)]


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RowCache.build(tmp_path / "rows", CODE, COUNT, progress=interrupt)
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_kept_unless_replaced(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(Refused, match="exists already"):
        RowCache.build(path, OTHER, COUNT)
    assert path.read_bytes() == before
    assert RowCache.build(path, OTHER, 3, replace=True).count == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_taken_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "rows"
    with pytest.raises(Refused, match="exists already"):
        RowCache.build(target, CODE, COUNT, progress=lambda done, total: target.write_bytes(b"mine") and None)
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"", "does not begin with"),
        (lambda data: data[:40], "ends inside the fingerprint"),
        (lambda data: data[:63], "ends inside the number of rows"),
        (lambda data: data[:64], "64 bytes, but 50 rows take 564"),
        (lambda data: data[:-1], "563 bytes, but 50 rows take 564"),
        (lambda data: data + b"\0", "565 bytes, but 50 rows take 564"),
        (lambda data: b"zkt-rows-v2" + data[11:], "does not begin with"),
        (lambda data: data[:15] + b"\1" + data[16:], "does not begin with"),
        (lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:], "rows of another code"),
        (lambda data: data[:55] + b"\x4c" + data[56:], "rows of 76 bits, the code has 75"),
        (lambda data: data[:56] + bytes(8) + data[64:], "claims 0 rows"),
        (lambda data: data[:56] + b"\xff" * 8 + data[64:], "claims 18446744073709551615 rows"),
        (lambda data: data[:63] + b"\x31" + data[64:], "564 bytes, but 49 rows take 554"),
        (lambda data: data[:64] + bytes(500), "row 0 is damaged"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 0x20]), "row 49 is damaged"),
    ],
)
def test_a_file_that_is_something_else(path: Path, change, reason: str) -> None:  # noqa: ANN001
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(MalformedFile, match=reason) as caught:
        RowCache.open(path, CODE)
    assert "\n" not in str(caught.value)


def test_rows_of_another_code(path: Path) -> None:
    with pytest.raises(MalformedFile, match="rows of another code"):
        RowCache.open(path, OTHER)


def test_a_damaged_row_is_found_when_it_is_asked_for(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[64 + 10 * 11] ^= 0x80  # row 11, which opening does not look at
    path.write_bytes(data)
    cache = RowCache.open(path, CODE)
    with pytest.raises(MalformedFile, match="row 11 is damaged"):
        cache.check([12, 11])
    cache.check([10, 12])
    with pytest.raises(InputError, match=r"holds rows 0\.\.49"):
        cache.check([50])


@pytest.mark.parametrize("where", ["missing", "."])
def test_a_path_without_a_file(tmp_path: Path, where: str) -> None:
    with pytest.raises(Refused):
        RowCache.open(tmp_path / where, CODE)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written"):
        RowCache.build(tmp_path / "no" / "rows", CODE, COUNT)


def test_no_rows_are_no_cache(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        RowCache.build(tmp_path / "rows", CODE, 0)


def test_every_flipped_byte_of_the_header_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    for at in range(64):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :])
        with pytest.raises(Error):
            RowCache.open(path, CODE)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    code = Code(key=KEY, label="cache", length=np.int64(75), colluders=np.int64(2))
    assert code == CODE
    assert RowCache.build(tmp_path / "rows", code, np.int64(3)).count == 3


def test_one_row(tmp_path: Path) -> None:
    assert np.array_equal(RowCache.build(tmp_path / "rows", CODE, 1).rows, CODE.rows([0]))
