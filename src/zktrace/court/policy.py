"""What a judge is ready to uphold, in a small TOML file. An unknown key is an error: no setting is ignored.

max_budget = 0.01                         # the largest false-accusation probability of one investigation
max_total_budget = 0.5                    # of it and all investigations of the log before it together
rules = ["certified", "paper"]
carriers = ["spread", "weight", "feature", "output"]
min_length = 128                          # positions of a code that may accuse
require_suspect = false                   # the suspect model must be given; scores are no model
require_readout = false                   # its readout must have been made again by this judge
require_shared = false                    # the release's shared model must be given
require_registry = false                  # an exported registry must be given
require_before = false                    # a head from before the suspect was known must be given
require_request = true                    # the accused's own requests to enrol must be in the file
require_dispatch = true                   # with a registry: the accused must have been sent a copy
require_receipt = false                   # the accused must have signed for a copy of the release
accept_weak_credentials = false           # keys of sets that are only for tests or reproduction
accept_tamper = true                      # the opposite of a row may accuse its owner
accept_scores = true                      # a matrix of scores may stand for a suspect that was only queried
logs = []                                 # keys of the log: checkpoints must be signed by one
witnesses = []                            # keys of witnesses that are believed
min_witnesses = 0                         # so many of them must have cosigned the checkpoint
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Final, Self, get_type_hints

from zktrace.carriers import LEAST, NAMES
from zktrace.errors import InputError
from zktrace.primitives.exact import exact_budget, exact_number
from zktrace.primitives.files import read_bounded
from zktrace.primitives.toml import check_keys, parse_toml, value_of
from zktrace.registry.records import RULES
from zktrace.transparency.trust import Trust, read_verifiers

FILE_LIMIT: Final = 1 << 16
_LENGTHS: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The judge's own conditions, beside the rules of the protocol."""

    max_budget: Fraction = Fraction(1, 100)
    max_total_budget: Fraction = Fraction(1, 2)
    rules: tuple[str, ...] = RULES
    carriers: tuple[str, ...] = field(default_factory=lambda: tuple(NAMES))
    min_length: int = LEAST
    require_suspect: bool = False
    require_readout: bool = False
    require_shared: bool = False
    require_registry: bool = False
    require_before: bool = False
    require_request: bool = True
    require_dispatch: bool = True
    require_receipt: bool = False
    accept_weak_credentials: bool = False
    accept_tamper: bool = True
    accept_scores: bool = True
    logs: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    min_witnesses: int = 0

    def __post_init__(self) -> None:
        for name in ("max_budget", "max_total_budget"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, exact_budget(given))
            budget = getattr(self, name)
            if not isinstance(budget, Fraction) or not 0 < budget < 1:
                raise InputError(f"policy: {name} must lie between 0 and 1")
        if type(self.min_length) is not int or not 1 <= self.min_length <= _LENGTHS:
            raise InputError(f"policy: min_length must be a whole number in 1..{_LENGTHS}")
        for name, allowed in (("rules", RULES), ("carriers", NAMES)):
            chosen: Sequence[str] = getattr(self, name)
            if not chosen or not set(chosen) <= set(allowed):
                raise InputError(f"policy: {name} must be some of {', '.join(allowed)}")
        if type(self.min_witnesses) is not int:
            raise InputError("policy: min_witnesses must be a whole number")
        _ = self.trust

    @property
    def trust(self) -> Trust:
        """Whom the judge believes about a checkpoint."""
        try:
            return Trust(
                logs=read_verifiers(self.logs),
                witnesses=read_verifiers(self.witnesses),
                quorum=self.min_witnesses,
            )
        except InputError as error:
            raise InputError(f"policy: {error}") from None

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Every key and its value, as a policy file spells them."""
        return tuple((each.name, _spelled(getattr(self, each.name))) for each in fields(self))

    @classmethod
    def from_toml(cls, data: bytes) -> Self:
        """A policy file; what it does not say is as in the default policy."""
        values = parse_toml(data, "policy", number=exact_number)
        kinds = get_type_hints(cls)
        check_keys("policy", values, kinds)
        return cls(**{name: value_of("policy", name, kinds[name], value) for name, value in values.items()})

    @classmethod
    def read(cls, path: Path) -> Self:
        """The policy of a file."""
        data = read_bounded(path, limit=FILE_LIMIT)
        try:
            return cls.from_toml(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _spelled(value: object) -> str:
    """A value for a person."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
