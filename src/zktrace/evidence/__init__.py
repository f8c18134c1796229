"""The evidence file: what an accusation rests on, in one canonical text (docs/spec/evidence.md)."""

from zktrace.evidence.file import Accused, CarrierOpening, Evidence, LoggedEntry, RowOpening, SeedOpening
from zktrace.evidence.findings import CarrierClaim, CertifiedScore, Findings, LookClaim, Naming, Stage

__all__ = [
    "Accused",
    "CarrierClaim",
    "CarrierOpening",
    "CertifiedScore",
    "Evidence",
    "Findings",
    "LoggedEntry",
    "LookClaim",
    "Naming",
    "RowOpening",
    "SeedOpening",
    "Stage",
]
