"""The option `--carrier`: one carrier, the two of the paper, or all."""

from enum import StrEnum

from zktrace.carriers import NAMES


class CarrierChoice(StrEnum):
    """Where copies carry their rows, and where a suspect is read."""

    WEIGHT = "weight"
    FEATURE = "feature"
    OUTPUT = "output"
    BOTH = "both"  # the paper's: weight and feature
    ALL = "all"

    @property
    def names(self) -> tuple[str, ...]:
        """The carriers that are meant."""
        several = {CarrierChoice.BOTH: NAMES[:2], CarrierChoice.ALL: NAMES}
        return several.get(self, (self.value,))
