"""Simulated CRPA interference: waveforms, array and multipath, front end, rendering."""

from zktrace.learning.data.gnss.settings import (
    HARDER,
    WIDE,
    A,
    B,
    GnssConfig,
    JnrLaw,
    Multipath,
    ReceiverShift,
    config_named,
)
from zktrace.learning.data.gnss.simulator import CLASS_NAMES, Samples, Simulator
from zktrace.learning.data.gnss.stations import FrontEnd, Receiver, Site

__all__ = [
    "CLASS_NAMES",
    "HARDER",
    "WIDE",
    "A",
    "B",
    "FrontEnd",
    "GnssConfig",
    "JnrLaw",
    "Multipath",
    "Receiver",
    "ReceiverShift",
    "Samples",
    "Simulator",
    "Site",
    "config_named",
]
