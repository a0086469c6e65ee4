"""Temperature jumps as a process function."""

from __future__ import annotations

import msgspec

from bench.peers.workloads import JUMP
from rivermark.process import Context, KeyedProcess, ValueState


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A temperature; `event_time` in milliseconds since 1970 (UTC)."""

    sensor_id: int
    event_time: int
    temperature: float


class Jump(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A reading far from its sensor's last one."""

    sensor_id: int
    event_ms: int
    temperature: float
    before: float


class Jumps(KeyedProcess[Reading, Jump]):
    """Keeps the last temperature of each sensor."""

    key = "sensor_id"
    time = "event_time"
    last: ValueState[float]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        """Compare with the last one."""
        before = self.last.value
        if before is not None and abs(event.temperature - before) > JUMP:
            ctx.emit(Jump(event.sensor_id, event.event_time, event.temperature, before))
        self.last.value = event.temperature
