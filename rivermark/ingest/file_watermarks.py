"""Files judged in their order of arrival, each by the clock that the one before left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rivermark.ingest.batch.base import ParsedBatch
from rivermark.ingest.file_statistics import FileFacts
from rivermark.ingest.watermark import Clock, Verdict, judge
from rivermark.model.stream import Ingest


def judge_files(
    files: Sequence[str],
    facts: Mapping[str, FileFacts],
    rows: ParsedBatch,
    clock: Clock,
    ingest: Ingest,
) -> tuple[dict[str, Verdict], Clock]:
    """The verdict on each file, by name, and the clock after the last one."""
    jump = ingest.contract.max_jump
    verdicts: dict[str, Verdict] = {}
    for name in files:
        found = facts.get(name, FileFacts())
        below = found.newest
        if jump and clock.newest and found.newest and found.newest > clock.newest + jump:
            below = rows.newest_until(name, clock.newest + jump)
        verdicts[name], clock = judge(
            clock, found.oldest, below, found.newest, ingest.lateness, jump
        )
    return verdicts, clock
