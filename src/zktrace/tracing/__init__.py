"""Readout -> scores -> certificates -> verdict -> evidence; every look is on record before it is taken."""

from zktrace.tracing.case import CarrierTable, Case, Lead, Named
from zktrace.tracing.evidence import Requests
from zktrace.tracing.protocol import decided, rebuild, trace
from zktrace.tracing.readout import Attempt, Readout

__all__ = [
    "Attempt",
    "CarrierTable",
    "Case",
    "Lead",
    "Named",
    "Readout",
    "Requests",
    "decided",
    "rebuild",
    "trace",
]
