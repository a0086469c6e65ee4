"""The lane on Spark's workers: typed values where it types a row, the cutter's texts elsewhere."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.cutter import Cutter
from rivermark.ingest.parse.lane.lane import Lane

TYPED: Final = "_typed"
"""Whether the lane typed a row: then its values stand beside the texts, which are empty."""
VALUES: Final = "_values"


class LaneOrCutter:
    """Sent to Spark's workers; holds nothing of Spark."""

    def __init__(self, lane: Lane, cutter: Cutter) -> None:
        self._lane = lane
        self._cutter = cutter

    def cells(self, payloads: pa.Array, formats: pa.Array, columns: pa.Array) -> pa.Array:
        """As `Cutter.cut` returns them, with the lane's values and the rows that have them.

        The texts of fields that the lane cannot type stand in all rows.
        """
        payloads = pc.fill_null(payloads, "")
        typed = self._lane.type(payloads, formats, columns)
        good = pa.array(typed.good)
        rest = pc.invert(good)
        cut = self._cutter.cut(*(each.filter(rest) for each in (payloads, formats, columns)))
        # The place of each row that was cut; none for those that were typed.
        places = pa.array(np.cumsum(~typed.good) - 1, mask=typed.good)
        cells = []
        for name in [field.name for field in cut.type]:
            texts = cut.field(name).take(places)
            cells.append(
                pc.if_else(good, typed.columns[name], texts) if name in typed.texts else texts
            )
        names = [name for name in typed.columns if name in self._lane.typed]
        values = pa.StructArray.from_arrays([typed.columns[name] for name in names], names)
        return pa.StructArray.from_arrays(
            [*cells, good, values], [*(field.name for field in cut.type), TYPED, VALUES]
        )
