"""What a request may ask for, and how long it waits until its days are closed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any, Final, get_args

import pytest

from rivermark.backfill import reprocess
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.reprocess import Request, Way, wait_until_closed
from rivermark.model.errors import PartitionStillOpen, RivermarkError
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.unit.backfill.conftest import DAY
from tests.unit.backfill.test_follow_ups import HOURLY

FIELDS: Final[dict[str, tuple[Any, str, str]]] = {
    "first": (DAY, "first (--from)", "rehearse replace what_if"),
    "last": (DAY, "last (--to)", "rehearse replace what_if"),
    "as_of": (0, "as_of (--as-of)", "rehearse replace what_if"),
    "wait": (timedelta(minutes=1), "wait_minutes (--wait)", "rehearse replace what_if"),
    "parameters": ({"limit": "1"}, "what_if (--what-if)", "what_if"),
    "follow_ups": (True, "follow_ups (--follow-ups)", "replace undo"),
    "undo_id": ("x", "undo (--undo)", "undo"),
}
"""A value of each field, what users call it, and the ways that heed it."""


@pytest.mark.parametrize(("way", "field"), [*product(get_args(Way), FIELDS)])
def test_n063_a_field_that_a_way_does_not_heed_is_refused_by_its_name(way: Way, field: str) -> None:
    value, called, ways = FIELDS[field]
    values = {"undo_id": "x"} if way == "undo" else {}

    if way in ways.split():
        assert getattr(Request(stream=HOURLY, way=way, **values | {field: value}), field) == value
        return
    with pytest.raises(RivermarkError) as refused:
        Request(stream=HOURLY, way=way, **values | {field: value})
    assert str(refused.value).endswith(f": leave out {called}")


def test_an_undo_of_nothing_is_refused_with_where_the_ids_are() -> None:
    with pytest.raises(RivermarkError, match="no reprocessing was named"):
        Request(stream=HOURLY, way="undo")


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
