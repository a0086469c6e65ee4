"""Named times of the stories: a day's noon, and durations in milliseconds."""

from __future__ import annotations

from typing import Final

NOON: Final = 1_577_880_000_000  # 2020-01-01T12:00:00Z
SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
