"""Readout -> scores -> certificates -> verdict -> evidence; every look is on record before it is taken."""

from zktrace.tracing.case import CarrierTable, Case, Lead, Named
from zktrace.tracing.evidence import Requests
from zktrace.tracing.investigation import Investigation, Plan, investigate
from zktrace.tracing.protocol import decided, rebuild, trace

__all__ = [
    "CarrierTable",
    "Case",
    "Investigation",
    "Lead",
    "Named",
    "Plan",
    "Requests",
    "decided",
    "investigate",
    "rebuild",
    "trace",
]
