"""How the page writes names, moments, spans and sizes."""

from __future__ import annotations

from datetime import UTC, datetime

from rivermark.monitor.late_statistics import span


def anchor(stream: str) -> str:
    """Where on the page a stream is."""
    return f"stream-{stream.replace('/', '-')}"


def moment_text(at: datetime | None) -> str:
    """A moment in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" if at else ""


def lag_text(watermark: datetime | None, now: datetime) -> str:
    """How far a watermark is behind the clock."""
    if watermark is None:
        return ""
    return span(max(0.0, (now - watermark).total_seconds()) * 1000)


def bytes_text(size: int) -> str:
    """A size in bytes with a unit."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
