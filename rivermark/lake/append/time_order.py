"""The order of a commit's files in which a reader may stop between any two of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from rivermark.lake.append.data_file import Tree


def in_time_order(adds: Sequence[Tree], event_time: str, lateness: timedelta) -> list[Tree] | None:
    """The files by their first event time; None where a reader that stops would lose rows.

    A reader's watermark is the newest time that it read less at least the lateness: behind any
    file it has to lie before every time that follows. None too where a file does not tell its
    times.
    """
    spans = []
    for each in adds:
        stats = json.loads(each["add"]["stats"])
        first, last = (stats.get(b, {}).get(event_time) for b in ("minValues", "maxValues"))
        if first is not None:
            spans.append((datetime.fromisoformat(first), datetime.fromisoformat(last), each))
        elif stats["nullCount"].get(event_time) != stats["numRecords"]:
            return None
    spans.sort(key=lambda span: span[:2])
    newest = accumulate((last for _, last, _ in spans), max)
    following = (first for first, _, _ in spans[1:])
    if any(first <= reached - lateness for reached, first in zip(newest, following, strict=False)):
        return None
    timeless = [each for each in adds if all(each is not span[2] for span in spans)]
    return [*timeless, *(each for _, _, each in spans)]
