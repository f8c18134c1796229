"""Kinds of values that several records have."""

from typing import Annotated, Final

from zktrace.primitives.commitment import COMMITMENT_BYTES
from zktrace.primitives.fields import octets, text, whole

NAME_LIMIT: Final = 100  # characters
WHOLE_LIMIT: Final = 1 << 40

Name = Annotated[str, text(NAME_LIMIT)]
Digest = Annotated[bytes, octets(COMMITMENT_BYTES)]
Count = Annotated[int, whole(0, WHOLE_LIMIT)]
