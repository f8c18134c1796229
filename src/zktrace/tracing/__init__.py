"""Readout -> scores -> certificates -> verdict -> evidence; every look is on record before it is taken."""

from zktrace.tracing.case import CarrierTable, Case, Lead, Named
from zktrace.tracing.evidence import Requests
from zktrace.tracing.investigation import Investigation, Plan, Steps, investigate, silent
from zktrace.tracing.protocol import begun, decided, rebuild, resume, trace

__all__ = [
    "CarrierTable",
    "Case",
    "Investigation",
    "Lead",
    "Named",
    "Plan",
    "Requests",
    "Steps",
    "begun",
    "decided",
    "investigate",
    "rebuild",
    "resume",
    "silent",
    "trace",
]
