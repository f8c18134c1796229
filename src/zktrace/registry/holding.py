"""Who has a copy of a release and who signed for one: sets of rows, however many stations there are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zktrace.registry.columns import RowView

Rows = NDArray[np.bool_]  # by row: whether a station is one of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Holding:
    """One release after some entries."""

    names: Sequence[str]  # of all stations, by row
    held: Rows  # were dispatched a copy
    receipts: Rows  # signed for one
    revoked: Rows

    @property
    def holders(self) -> Sequence[str]:
        """The stations that were dispatched a copy, in the order of their rows."""
        return self._named(self.held)

    @property
    def signers(self) -> Sequence[str]:
        """The stations that signed for one."""
        return self._named(self.receipts)

    @property
    def unsigned(self) -> Sequence[str]:
        """Those that have one and signed for none."""
        return self._named(self.held & ~self.receipts)

    @property
    def waiting(self) -> Sequence[str]:
        """Those that have none and are not revoked."""
        return self._named(~self.held & ~self.revoked)

    def _named(self, rows: Rows) -> Sequence[str]:
        return RowView(self.names.__getitem__, np.flatnonzero(rows).tolist())
