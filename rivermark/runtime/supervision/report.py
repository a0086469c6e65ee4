"""Reports of a run about its streams while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.supervision.supervisor import Supervisor


@dataclass(frozen=True)
class Report:
    """The work of a stream since its last report; numbers as in the asset's metadata.

    `closed_days` are days that became final (or were computed again) since the last report, `error`
    the last failure where no batch was finished since: of a stream that is started again, or with
    `failed` of one that is not.
    """

    stream: str
    at: datetime
    kind: Literal["progress", "final"]
    numbers: dict[str, int | float]
    watermark: datetime | None = None
    closed_days: tuple[date, ...] = ()
    pending: tuple[str, ...] = ()
    error: str | None = None
    failed: bool = False


OnReport = Callable[[Report], None]


@dataclass
class Reporter:
    """Turns running totals into reports of what is new."""

    supervisor: Supervisor
    on_report: OnReport | None
    _before: dict[str, tuple[int, int, int, float]] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        settings = self.supervisor.settings
        self._closed = ClosedDays(settings.lake(), settings.state)

    def report(self, name: str, kind: Literal["progress", "final"]) -> None:
        """Report one stream to the listener, if there is one."""
        run, summary = self.supervisor.runs[name], self.supervisor.summaries[name]
        closed = self._closed.newly_closed(run.stream, summary)
        pending = self._pending(name)
        if kind == "final":
            summary.pending = pending
        if self.on_report is None:
            return
        self.on_report(
            Report(
                name,
                datetime.now(UTC),
                kind,
                self._numbers(name),
                summary.watermark,
                closed,
                tuple(pending),
                summary.error,
                run.state == "failed",
            )
        )

    def _numbers(self, name: str) -> dict[str, int | float]:
        summary = self.supervisor.summaries[name]
        before = self._before.get(name, (0, 0, 0, self._started))
        now = time.monotonic()
        self._before[name] = (summary.rows_in, summary.rows_out, summary.batches, now)
        rows_in = summary.rows_in - before[0]
        numbers: dict[str, int | float] = {
            "rows_in": rows_in,
            "rows_out": summary.rows_out - before[1],
            "rows_per_second": round(rows_in / max(now - before[3], 0.001), 3),
            "batches": summary.batches - before[2],
            "batch_ms": summary.batch_ms,
            "late": summary.late,
            "quarantined": summary.quarantined,
            "duplicates": summary.duplicates,
            "state_rows": summary.state_rows,
            "state_bytes": summary.state_bytes,
        }
        if name in self.supervisor.hosts:
            # Spark freezes it at the first start; settings changed since need a new checkpoint.
            generation = self.supervisor.hosts[name].generation
            numbers["shuffle_partitions"] = generation.shuffle_partitions
            backlog = self.supervisor.hosts[name].backlog
            numbers |= backlog.numbers() if backlog else {}
        numbers |= summary.metrics()
        if summary.watermark:
            lag = datetime.now(UTC) - summary.watermark
            numbers["watermark_lag_seconds"] = round(lag.total_seconds(), 3)
        return numbers

    def _pending(self, name: str) -> list[str]:
        """The waiting input: files that cannot be read yet, open windows, the slowest input."""
        summary, host = self.supervisor.summaries[name], self.supervisor.hosts.get(name)
        if host is None:
            return []
        lines = host.backlog.describe() if host.backlog else []
        if summary.state_rows:
            past = summary.watermark.isoformat() if summary.watermark else "all that was seen"
            lines.append(f"{summary.state_rows} rows of state wait for event time past {past}")
        inputs = sorted(host.watermark.of_inputs().items(), key=lambda item: item[1])
        if summary.state_rows and inputs and inputs[0][1] < inputs[-1][1]:
            reached = ", ".join(f"{table} at {at.isoformat()}" for table, at in inputs)
            lines.append(f"its inputs have come to {reached}: results wait for {inputs[0][0]}")
        return lines
