"""What a credential proof is about: nothing further, a message, or a model and a station's bits in it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zktrace.cli.options import workspace_at
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.credentials import Binding, Component, PublicKey
    from zktrace.models import ModelState


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the options say a proof is about; a combination that says two things is an error."""

    model: Path | None
    station: str | None
    component: Path | None
    message: Path | None
    workspace: Path | None
    raw: bool

    def __post_init__(self) -> None:
        sources = (self.station is not None) + (self.component is not None)
        if self.message is not None and (self.model is not None or sources):
            raise InputError("--message cannot be combined with --model, --station or --component")
        if (self.model is not None) != (sources == 1):
            raise InputError("--model and one of --station and --component belong together")
        if self.station is None and (self.workspace is not None or self.raw):
            raise InputError("--workspace and --raw belong to --station")

    @property
    def source(self) -> str:
        """Where the component comes from, in words."""
        if self.station is None:
            return "component as given, not read from the model"
        return f"component of {self.station}, read from the model"


def binding_of(about: About, public: "PublicKey") -> "Binding":
    """What a proof by the holder of `public` is about."""
    from zktrace.credentials import Component, CredentialBinding, MessageBinding, ModelBinding

    if about.message is not None:
        return MessageBinding.of_file(about.message)
    if about.model is None:
        return CredentialBinding()
    from zktrace.models import model_digest, open_model

    state = open_model(about.model)
    if about.component is not None:
        component = Component.from_file(about.component)
    else:
        station = about.station or ""
        component, enrolled = component_of(state, station, about.workspace, raw=about.raw)
        if enrolled.to_bytes() != public.to_bytes():
            raise Refused(f"{station} is enrolled with another credential than {public.fingerprint.hex()}")
    return ModelBinding(state_digest=model_digest(state), component=component)


def component_of(
    state: "ModelState", station: str, workspace: Path | None, *, raw: bool
) -> "tuple[Component, PublicKey]":
    """The bits that a registry's setup finds in a model at a station's row, and the station's credential."""
    from zktrace.credentials import Component, PublicKey
    from zktrace.readouts.identity import read_component

    ledger = workspace_at(workspace).registry.ledger()
    enrolment, bits = ledger.station(station).enrolment, ledger.setup.identity_bits
    packed = read_component(state, row=enrolment.row, bits=bits, raw=raw)
    return Component(bits=bits, packed=packed), PublicKey.from_bytes(enrolment.public_key)
