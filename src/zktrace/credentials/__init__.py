"""xLPN credentials and the Stern Sigma-protocol as a Fiat-Shamir proof. Knows no registry."""

from zktrace.credentials.binding import (
    Binding,
    Component,
    CredentialBinding,
    MessageBinding,
    Mode,
    ModelBinding,
    RequestBinding,
)
from zktrace.credentials.keys import PublicKey, SecretKey
from zktrace.credentials.params import DEFAULT, Standing, XLPNParams, by_name
from zktrace.credentials.proof import Proof
from zktrace.credentials.stern import prove, verify

__all__ = [
    "DEFAULT",
    "Binding",
    "Component",
    "CredentialBinding",
    "MessageBinding",
    "Mode",
    "ModelBinding",
    "Proof",
    "PublicKey",
    "RequestBinding",
    "SecretKey",
    "Standing",
    "XLPNParams",
    "by_name",
    "prove",
    "verify",
]
