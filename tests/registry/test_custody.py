"""What only the holder of the code key derives, and readouts as they are on record."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from registry.small import CUSTODY, LENGTHS, SHAPES, setup
from zktrace.codes import LAWS, CodeKey, Law, unpack
from zktrace.derivation.promises import Claim, bias_commitment
from zktrace.errors import InputError, MalformedFile, Rejected
from zktrace.registry.custody import CodeShape, Custody, default_shape
from zktrace.registry.readouts import read_readout, readout_bytes, readout_digest
from zktrace.registry.records import PLACE, RELEASE, SetupRecord

OTHER = Custody(key=CodeKey(secret=bytes(32)), shapes=SHAPES)


def test_the_setup_commits_to_every_seed() -> None:
    found = setup()
    assert found.code_key == CUSTODY.key_commitment()
    for shape in SHAPES:
        code = found.code(shape.carrier)
        assert code is not None
        assert code.colluders == shape.colluders
        assert code.biases == bias_commitment(CUSTODY.bias_seed(shape.carrier), shape.carrier)
    assert found.places == CUSTODY.tree(PLACE, 0, 8)
    assert found.releases == CUSTODY.tree(RELEASE, 0, 4)
    assert SetupRecord.from_json(found.as_json()) == found


def test_custody_of_a_registry_needs_its_key() -> None:
    assert Custody.of_setup(CUSTODY.key, setup()) == CUSTODY
    with pytest.raises(Rejected, match="not the one"):
        Custody.of_setup(OTHER.key, setup())
    with pytest.raises(Rejected, match="not the one"):
        Custody.of_setup(CUSTODY.key, replace(setup(), code_key=bytes(32)))


def test_custody_shows_no_key() -> None:
    assert CUSTODY.key.secret.hex() not in repr(CUSTODY)
    assert repr(CUSTODY.key.secret) not in repr(CUSTODY)


def test_carriers_are_known_and_each_once() -> None:
    with pytest.raises(InputError, match="no code for the carrier"):
        CUSTODY.code("output", (), length=8, law="fair")
    with pytest.raises(InputError, match="no carrier 'sound'"):
        default_shape("sound")
    shape = CodeShape(carrier="sound", colluders=2)
    for wrong in ((), (SHAPES[0], SHAPES[0]), (shape,)):
        with pytest.raises(InputError, match="each once"):
            Custody(key=CUSTODY.key, shapes=wrong)
    default = [default_shape(each) for each in ("spread", "weight", "feature")]
    assert [each.colluders for each in default] == [2, 2, 3]


def test_a_code_that_cannot_be_is_refused_before_any_release() -> None:
    with pytest.raises(InputError):
        Custody(key=CUSTODY.key, shapes=(replace(SHAPES[0], colluders=1),))
    large = Custody(key=CUSTODY.key, shapes=(replace(SHAPES[0], colluders=257),))
    for law in ("unfair", "nuida"):
        with pytest.raises(InputError):
            large.code("weight", (), length=24, law=law).biases  # type: ignore[arg-type]  # noqa: B018


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_longer_code_begins_with_a_shorter_one(shape: CodeShape, law: Law) -> None:
    """So one promise of the seeds serves releases of every length."""
    claims = [Claim(bytes([i]) * 32, b"key") for i in range(3)]
    name, length = shape.carrier, LENGTHS[shape.carrier]
    short, long = (CUSTODY.code(name, claims, length=each, law=law) for each in (length, 3 * length))
    assert (short.length, long.length) == (length, 3 * length)
    assert short.bias_seed == long.bias_seed == CUSTODY.bias_seed(name)
    assert (short.law, short.colluders) == (law, shape.colluders)
    assert long.biases.thresholds[:length].tolist() == short.biases.thresholds.tolist()
    rows, longer = (unpack(each.rows(range(3)), each.length) for each in (short, long))
    assert longer[:, :length].tolist() == rows.tolist()


def test_a_readout_is_digested_bit_by_bit() -> None:
    values = np.array([1.5, -0.0, 1e-300])
    data = bytes.fromhex("3ff80000000000008000000000000000") + np.array(1e-300, ">f8").tobytes()
    assert readout_bytes(values) == data
    assert readout_digest(values) == hashlib.sha256(b"zkt-readout-v1" + data).digest()
    assert readout_digest(values) != readout_digest(np.abs(values))
    assert readout_digest(values) != readout_digest(values[:2])
    assert readout_digest(values[::-1]) == readout_digest(values[::-1].copy())
    back = read_readout(data, what="it")
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(0),
        np.zeros((2, 2)),
        np.zeros(3, np.float32),
        np.arange(3),
        np.array([np.nan]),
        np.array([np.inf]),
        np.zeros((1 << 20) + 1),
    ],
)
def test_nothing_else_is_a_readout(values: np.ndarray) -> None:
    with pytest.raises(InputError, match="a readout"):
        readout_digest(values)


@pytest.mark.parametrize("data", [b"", bytes(7), bytes(9), bytes.fromhex("7ff0000000000000"), b"\xff" * 8])
def test_other_bytes_are_no_readout(data: bytes) -> None:
    with pytest.raises(MalformedFile, match="it: "):
        read_readout(data, what="it")
