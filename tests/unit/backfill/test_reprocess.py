"""A reprocessing waits until its days are closed, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from rivermark.backfill import reprocess
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.reprocess import wait_until_closed
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.unit.backfill.conftest import DAY
from tests.unit.backfill.test_follow_ups import HOURLY


@pytest.mark.parametrize(
    ("open_for", "at_most", "slept"),
    [(2, timedelta(hours=1), 2), (9, timedelta(seconds=12), 3), (0, timedelta(0), 0)],
    ids=["until it is closed", "as long as it may", "not at all"],
)
def test_it_waits_until_the_day_is_closed_and_says_why_once(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    open_for: int,
    at_most: timedelta,
    slept: int,
) -> None:
    answers: Iterator[bool] = iter([True] * open_for + [False])
    steps: list[str] = []
    sleeps: list[float] = []
    context = BackfillContext(
        settings=settings,
        topology=Topology([]),
        spark=lambda: None,  # type: ignore[arg-type,return-value]
        run_id="r",
        on_step=steps.append,
    )

    def check(*_: object) -> None:
        if next(answers):
            raise PartitionStillOpen("at noon")

    monkeypatch.setattr(reprocess, "check_closed", check)
    try:
        wait_until_closed(context, HOURLY, DAY, at_most=at_most, sleep=sleeps.append)
        closed = True
    except PartitionStillOpen:
        closed = False

    assert closed is (timedelta(seconds=5) * open_for <= at_most)
    assert steps == ["waiting: at noon"][: len(sleeps)]
    assert sleeps == [5] * slept
