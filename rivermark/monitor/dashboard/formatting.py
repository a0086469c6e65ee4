"""Names, numbers, times and sizes on the pages: the filters of their templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from rivermark.html.page import pages_of
from rivermark.monitor.time_span import span

LONGEST: Final = 120
"""Characters of a value that are shown."""


def anchor(name: str, kind: str = "stream") -> str:
    """The id of a stream, or of a group, on the page."""
    return f"{kind}-{name.replace('/', '-')}"


def time_text(at: datetime | None) -> str:
    """A time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" if at else ""


def lag_text(watermark: datetime | None, now: datetime) -> str:
    """The distance of a watermark behind the current time."""
    if watermark is None:
        return ""
    return span(max(0.0, (now - watermark).total_seconds()) * 1000)


def bytes_text(size: float) -> str:
    """A size in bytes with a unit."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def cell_text(value: object) -> str:
    """A value of a row, shortened; times in UTC."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def metrics_text(metrics: Mapping[str, int | float]) -> str:
    """Counters and gauges in a line."""
    return ", ".join(f"{name} {number:,}" for name, number in sorted(metrics.items()))


def number_text(number: float | None) -> str:
    """A whole number with separators; nothing for None."""
    return "" if number is None else f"{number:,.0f}"


def percent_text(share: float | None) -> str:
    """A share as a percentage; nothing for None."""
    return "" if share is None else f"{share:.2%}"


FILTERS: Final[tuple[tuple[str, Callable[..., str]], ...]] = (
    ("anchor", anchor),
    ("bytes", bytes_text),
    ("cell", cell_text),
    ("lag", lag_text),
    ("metrics", metrics_text),
    ("number", number_text),
    ("percent", percent_text),
    ("span", span),
    ("time", time_text),
)


def render(template: str, **values: object) -> str:
    """A page of this package, drawn from its values."""
    return pages_of("rivermark.monitor.dashboard", *FILTERS).get_template(template).render(values)
