"""Commitments and what opens them: an operator derives, a judge recomputes."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from registry.small import CUSTODY, SHAPES, public_key, setup
from zktrace.codes import Biases, CodeKey
from zktrace.errors import InputError, MalformedFile, Rejected
from zktrace.registry.bindings import (
    bias_commitment,
    directions_commitment,
    enrolment_commitment,
    key_commitment,
    read_readout,
    readout_bytes,
    readout_digest,
)
from zktrace.registry.custody import CodeShape, Custody, default_shape
from zktrace.registry.records import Setup

OTHER = Custody(key=CodeKey(secret=bytes(32)), shapes=SHAPES)
RHO = bytes(range(32))


def field(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def shake(domain: str, *parts: bytes) -> bytes:
    """As docs/spec/registry.md says, from hashlib alone."""
    return hashlib.shake_256(b"".join(map(field, (domain.encode(), *parts)))).digest(32)


def test_commitments_are_what_the_specification_says() -> None:
    public, biases = public_key("alpha"), CUSTODY.code("weight").biases
    matrix, word = public.matrix, public.codeword(128)
    thresholds = b"".join(int(each).to_bytes(4, "big") for each in biases.thresholds)
    base = "zkt-commitment-v1/"
    assert key_commitment(RHO, b"k" * 32) == shake(f"{base}code-key", RHO, b"k" * 32)
    assert bias_commitment(RHO, "weight", biases) == shake(
        f"{base}biases", RHO, b"weight", (2).to_bytes(8, "big"), thresholds
    )
    assert directions_commitment(RHO, "weight") == shake(f"{base}directions", RHO, b"weight")
    assert enrolment_commitment(RHO, "weight", public, word, b"row") == shake(
        f"{base}enrolment", RHO, b"weight", word, b"row", matrix, public.y
    )


def test_openings_and_seeds_are_what_the_specification_says() -> None:
    secret = CUSTODY.key.secret
    assert CUSTODY.key_opening() == shake("zkt-code-v1/opening/code-key", secret)
    assert CUSTODY.bias_opening("weight") == shake("zkt-code-v1/opening/biases", secret, b"weight")
    row = (7).to_bytes(8, "big")
    assert CUSTODY.row_opening("weight", 7) == shake("zkt-code-v1/opening/row", secret, b"weight", row)
    seed = CUSTODY.direction_seed("weight", "v1")
    assert seed == shake("zkt-code-v1/directions", secret, b"weight", b"v1")


def test_the_setup_opens_with_the_openings() -> None:
    found = setup()
    assert found.code_key == key_commitment(CUSTODY.key_opening(), CUSTODY.key.secret)
    for shape in SHAPES:
        code = found.code(shape.carrier)
        assert code is not None
        assert (code.length, code.colluders) == (shape.length, shape.colluders)
        biases = CUSTODY.code(shape.carrier).biases
        assert code.biases == bias_commitment(CUSTODY.bias_opening(shape.carrier), shape.carrier, biases)
    assert Setup.from_json(found.as_json()) == found


def test_an_enrolment_opens_with_its_own_row_and_nothing_else() -> None:
    public = public_key("alpha")
    made = CUSTODY.enrolment(setup(), station="alpha", row=3, public=public)
    assert made.codeword == public.codeword(128)
    for carrier, commitment in made.commitments:
        rho, row = CUSTODY.row_opening(carrier, 3), CUSTODY.row(carrier, 3)
        word = made.codeword
        assert enrolment_commitment(rho, carrier, public, word, row) == commitment
        flipped = bytes([row[0] ^ 128]) + row[1:]
        for wrong in (
            enrolment_commitment(rho, carrier, public, word, flipped),
            enrolment_commitment(rho, carrier, public, bytes(16), row),
            enrolment_commitment(rho, carrier, public_key("beta"), word, row),
            enrolment_commitment(CUSTODY.row_opening(carrier, 4), carrier, public, word, row),
            enrolment_commitment(rho, "output", public, word, row),
        ):
            assert wrong != commitment


def test_everything_derived_is_different() -> None:
    derived = [
        each
        for custody in (CUSTODY, OTHER)
        for each in (
            custody.key_opening(),
            *(custody.bias_opening(carrier) for carrier in ("weight", "feature")),
            *(custody.row_opening(carrier, row) for carrier in ("weight", "feature") for row in range(3)),
            *(custody.direction_seed(carrier, name) for carrier in ("weight", "feature") for name in "ab"),
        )
    ]
    assert len(set(derived)) == len(derived)


def test_a_bias_commitment_binds_every_bias_and_the_coalition_size() -> None:
    biases = CUSTODY.code("weight").biases
    made = bias_commitment(RHO, "weight", biases)
    for at in range(biases.length):
        changed = biases.thresholds.copy()
        changed[at] = (1 << 31) + 5
        assert bias_commitment(RHO, "weight", Biases(thresholds=changed, colluders=2)) != made
    assert bias_commitment(RHO, "weight", Biases(thresholds=biases.thresholds, colluders=3)) != made


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
        CUSTODY.code("output")
    with pytest.raises(InputError, match="no carrier 'sound'"):
        default_shape("sound")
    shape = CodeShape(carrier="sound", length=8, colluders=2)
    for wrong in ((), (SHAPES[0], SHAPES[0]), (shape,)):
        with pytest.raises(InputError, match="each once"):
            Custody(key=CUSTODY.key, shapes=wrong)
    default = [default_shape(each) for each in ("weight", "feature")]
    assert [(each.length, each.colluders) for each in default] == [(512, 2), (2048, 3)]


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
