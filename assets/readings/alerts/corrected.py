"""Readings per sensor and ten seconds, corrected by late ones, and what came too late for that."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from assets.readings.alerts.reading import Reading
from rivermark.process import ColumnType, Millis, Record, SideOutput
from rivermark.process.windows import Tumbling, WindowAggregate, WindowContext

SIZE: Final = timedelta(seconds=10)
CORRECTED_FOR: Final = timedelta(seconds=5)


class Tally(Record):
    """Which readings, and their sum in degrees Fahrenheit."""

    sequences: tuple[int, ...]
    total: Decimal


class CorrectedCount(Record):
    """A window's count so far; `mark` is `first` or `update`, and `revision` counts from 1.

    The row with the highest revision of a sensor and window is the one that counts.
    """

    sensor_id: str
    window_start: Millis
    window_end: Millis
    readings: Annotated[int, "How many readings, repeats left out."]
    total: Annotated[Decimal, ColumnType("decimal(18,4)"), "Their sum (degrees Fahrenheit)."]
    mark: Annotated[str, "first, or update where the count is a correction."]
    revision: Annotated[int, "Which count of this sensor and window it is, from 1."]


class CorrectedCounts(WindowAggregate[Reading, Tally, CorrectedCount]):
    """Keeps which readings each open window has had, and their sum, for five seconds after its end.

    A late reading in that time gives an update; a later one goes to the late readings. One that was
    sent twice counts once.
    """

    key = "sensor_id"
    time = "event_time"
    windows = Tumbling(SIZE)
    allowed_lateness = CORRECTED_FOR
    late = SideOutput("readings_too_late", Reading)

    def update(self, value: Tally | None, event: Reading) -> Tally:
        """Add a reading."""
        if value is None:
            return Tally((event.sequence,), event.temperature)
        if event.sequence in value.sequences:
            return value
        return Tally((*value.sequences, event.sequence), value.total + event.temperature)

    def on_window(self, value: Tally, ctx: WindowContext[CorrectedCount]) -> None:
        """Emit the count, and whether it is a correction."""
        revision = int(ctx.state.get("revision") or 0) + 1
        ctx.state["revision"] = revision
        ctx.emit(
            CorrectedCount(
                ctx.key,
                ctx.window.start,
                ctx.window.end,
                len(value.sequences),
                value.total,
                ctx.mark,
                revision,
            )
        )
