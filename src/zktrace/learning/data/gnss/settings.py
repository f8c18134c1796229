"""What can be chosen about the simulation. Fixed before any tracing result was looked at: B, U(0, 40) dB."""

from dataclasses import dataclass
from typing import Final

from zktrace.errors import InputError

Range = tuple[float, float]


def _check(what: str, span: Range, low: float, high: float) -> None:
    if not low <= span[0] <= span[1] <= high:
        raise InputError(f"{what} {span[0]:g}..{span[1]:g}: must be an interval inside {low:g}..{high:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipath:
    """A site's reflections: Rician factor and delay spread, each uniform over its range."""

    name: str
    k_factor_db: Range
    delay_spread_ns: Range

    def __post_init__(self) -> None:
        _check("K factor (dB)", self.k_factor_db, -40, 60)
        _check("delay spread (ns)", self.delay_spread_ns, 1, 200)  # 64 lead-in samples are 640 ns


@dataclass(frozen=True, slots=True, kw_only=True)
class JnrLaw:
    """Jammer-to-noise ratio, uniform over a range in dB."""

    name: str
    low_db: float
    high_db: float

    def __post_init__(self) -> None:
        _check("JNR (dB)", (self.low_db, self.high_db), -40, 80)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverShift:
    """Stress test of the paper (sub:stressors): a gain offset, and extra noise at one SNR a station."""

    gain_db: float = 3.0
    snr_db: Range = (5.0, 20.0)

    def __post_init__(self) -> None:
        _check("gain offset (dB)", (self.gain_db, self.gain_db), -40, 40)
        _check("SNR (dB)", self.snr_db, -40, 80)


A: Final = Multipath(name="A", k_factor_db=(3, 14), delay_spread_ns=(15, 70))
B: Final = Multipath(name="B", k_factor_db=(1, 12), delay_spread_ns=(20, 100))
WIDE: Final = JnrLaw(name="U(0, 40)", low_db=0, high_db=40)
HARDER: Final = JnrLaw(name="U(-5, 30)", low_db=-5, high_db=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class GnssConfig:
    """Everything that decides a sample besides seed, index, class and station."""

    multipath: Multipath = B
    jnr: JnrLaw = WIDE
    domain_shift: bool = True  # off: every station has the same neutral front end and antenna
    receiver_shift: ReceiverShift | None = None

    @property
    def title(self) -> str:
        """For figures and tables."""
        parts = [f"setting {self.multipath.name}", f"JNR {self.jnr.name} dB"]
        parts.append("one front end a station" if self.domain_shift else "one neutral front end")
        if self.receiver_shift is not None:
            parts.append(f"receiver shift {self.receiver_shift.gain_db:+g} dB")
        return ", ".join(parts)


DEFAULT: Final = GnssConfig()


def config_named(
    setting: str = "B", jnr: str = "wide", *, domain_shift: bool = True, receiver_shift: bool = False
) -> GnssConfig:
    """A configuration from the words a user writes."""
    settings, laws = {"A": A, "B": B}, {"wide": WIDE, "harder": HARDER}
    if setting not in settings:
        raise InputError(f"multipath setting {setting!r}: choose one of {', '.join(settings)}")
    if jnr not in laws:
        raise InputError(f"JNR law {jnr!r}: choose one of {', '.join(laws)}")
    return GnssConfig(
        multipath=settings[setting],
        jnr=laws[jnr],
        domain_shift=domain_shift,
        receiver_shift=ReceiverShift() if receiver_shift else None,
    )
