"""Late rows are taken into closed days exactly once, and nothing else changes."""

import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import rivermark.backfill.late.merge
import rivermark.backfill.late.run
from rivermark.backfill.late.days import late_days
from rivermark.backfill.late.merge_log import interrupted_merges, merged_through, rows_merged
from rivermark.backfill.pending import PENDING_AND_MERGES
from rivermark.lake.archive import archive_table
from rivermark.lake.locks import commit_lock, try_merge_lock
from rivermark.lake.log import Commit, CommitLog
from rivermark.lake.replace import replace_span
from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table
from rivermark.monitor.checks.row_checks import late_share
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.monitor.completeness.checks import days_complete
from rivermark.monitor.completeness.ingest_day import Day, days_of_ingest
from rivermark.monitor.late_statistics import lateness_of_rows
from rivermark.monitor.watermarks import watermarks_of
from rivermark.settings import Settings
from tests.oracles.shop import (
    FIRST,
    HOUR,
    LATENESS,
    ORDERS,
    PAYMENTS,
    SHOP,
    START,
    File,
    Landed,
    append,
    sent,
    write,
)
from tests.unit.backfill.late.conftest import Merge, ids

DAY = timedelta(days=1)


def everything(landed: Landed) -> list[int]:
    """What the oracle that knows everything has: every row, however late."""
    return sorted(
        [e.order_id for _, e in landed.admitted] + [e.order_id for _, e, _ in landed.late]
    )


def first_day(settings: Settings) -> Day:
    """The first day of payments, as its check sees it."""
    watermarks = watermarks_of(settings, [PAYMENTS])
    (day,) = days_of_ingest(settings, SHOP, PAYMENTS, FIRST, FIRST, watermarks)
    return day


def version_of(settings: Settings, table: Table) -> int:
    return int(DeltaTable(settings.lake().path(table)).version())


def merging_commits(settings: Settings) -> list[Commit]:
    log = CommitLog(settings.lake().path(PAYMENTS.admitted))
    return [commit for commit in log.backwards() if "fold" in commit.metadata]


def test_every_late_row_of_a_closed_day_is_there_once_after_the_merge(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    late_before = version_of(settings, PAYMENTS.late)

    report = merge()

    assert ids(settings, PAYMENTS) == everything(payments)
    assert report.rows == len(payments.late)
    assert [(d.stream, d.day) for d in report.days] == [
        (PAYMENTS.name, FIRST + n * DAY) for n in range(3)
    ]
    for day in report.days:
        admitted, late, _ = payments.of(day.day)
        assert (day.rows_before, day.rows_merged) == (admitted, late)
        assert (day.money_before, day.money_merged) == (
            10 * Decimal(admitted),
            10 * Decimal(late),
        )
    # The late table is the evidence and stays.
    assert version_of(settings, PAYMENTS.late) == late_before


def test_merging_again_finds_nothing(settings: Settings, payments: Landed, merge: Merge) -> None:
    merge()
    version = version_of(settings, PAYMENTS.admitted)

    again = merge()

    assert (again.rows, again.days) == (0, [])
    assert version_of(settings, PAYMENTS.admitted) == version
    assert late_days(settings, PAYMENTS) == []
    assert merged_through(settings.lake(), PAYMENTS) == max(
        int(file.name[:5]) for file, *_ in payments.late
    )


def test_the_days_warn_before_and_are_told_as_merged_after(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    _, late, _ = payments.of(FIRST)
    before = days_complete(settings, SHOP, PAYMENTS)
    assert (before.passed, before.severity) == (False, "warning")
    day = first_day(settings)
    assert f"{late} late rows not merged (2.0%, 2.0% of the money)" in day.sentence

    merge()

    after = days_complete(settings, SHOP, PAYMENTS)
    assert after.passed, after.observed
    day = first_day(settings)
    assert (day.state, day.late, day.merged, day.seen) == ("complete", late, late, 1440)
    assert f"{late} late rows merged" in day.sentence
    assert day.money_share == 0.0


def test_the_figures_of_lateness_stay_as_they_were(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    before = lateness_of_rows(settings, PAYMENTS)
    share = late_share(settings, PAYMENTS).numbers

    merge()

    after = lateness_of_rows(settings, PAYMENTS)
    assert after.merged == before.late == len(payments.late)
    assert replace(after, merged=before.merged) == before
    assert late_share(settings, PAYMENTS).numbers == share


def test_what_came_is_still_accounted_for_and_a_row_merged_twice_is_not(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    merge()
    answer = rows_accounted_for(settings, PAYMENTS, newest_batches=None)
    assert answer.passed, answer.observed
    assert answer.numbers["rows_folded"] == len(payments.late)
    assert answer.numbers["rows_admitted"] == len(payments.admitted)

    table = DeltaTable(settings.lake().path(PAYMENTS.late)).to_pyarrow_table()
    row = {k: v[0] for k, v in table.slice(0, 1).to_pydict().items()}
    append(settings, PAYMENTS.admitted, [{k: row[k] for k in row if not k.startswith("_wat")}])

    assert not rows_accounted_for(settings, PAYMENTS, newest_batches=None).passed


class KilledError(Exception):
    """The end of a process, made by a test."""


STEPS = {
    "after it was written down": ("record_start", 1, True),
    "after the first day": ("merge_day", 1, True),
    "after the last day": ("merge_day", 2, True),
    "before it is over": ("record_finish", 1, False),
    "after it was over": ("record_finish", 1, True),
}


@pytest.mark.parametrize(("step", "call", "done"), STEPS.values(), ids=STEPS)
def test_a_merge_that_is_killed_at_any_step_is_finished_by_the_next_one(
    settings: Settings, merge: Merge, step: str, call: int, done: bool, monkeypatch: Any
) -> None:
    sources = {i.name: (i, write(settings, i, sent(1))) for i in (ORDERS, PAYMENTS)}
    real, calls = getattr(rivermark.backfill.late.run, step), iter(range(1, 100))

    def until_killed(*given: Any, **more: Any) -> Any:
        now = next(calls) == call
        if now and not done:
            raise KilledError
        result = real(*given, **more)
        if now:
            raise KilledError
        return result

    with monkeypatch.context() as patch:
        patch.setattr(rivermark.backfill.late.run, step, until_killed)
        with pytest.raises(KilledError):
            merge()

    report = merge()

    assert interrupted_merges(settings.lake()) == set()
    assert report.resumed == (0 if step == "record_finish" and done else 1)
    for ingest, landed in sources.values():
        assert ids(settings, ingest) == everything(landed)
        assert rows_accounted_for(settings, ingest, newest_batches=None).passed
        assert late_days(settings, ingest) == []
    assert merge().resumed == 0


def test_a_kill_right_after_the_commit_of_a_span_doubles_nothing(
    settings: Settings, payments: Landed, merge: Merge, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = replace_span

    def and_die(*given: Any) -> None:
        real(*given)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(rivermark.backfill.late.merge, "replace_span", and_die)
        with pytest.raises(KilledError):
            merge()
    _, late, _ = payments.of(FIRST)
    assert len(ids(settings, PAYMENTS)) == len(payments.admitted) + late

    assert merge().rows == len(payments.late) - late

    assert ids(settings, PAYMENTS) == everything(payments)


def test_a_late_row_of_a_day_that_is_still_open_waits(settings: Settings, merge: Merge) -> None:
    landed = write(settings, PAYMENTS, sent(3)[:60])
    open_day = FIRST + 2 * DAY
    assert landed.newest is not None
    assert landed.newest - LATENESS < START + 3 * DAY

    found = {d.day: d for d in late_days(settings, PAYMENTS)}
    assert [found[day].closed for day in sorted(found)] == [True, True, False]
    report = merge()

    assert {d.day for d in report.days} == {FIRST, FIRST + DAY}
    (waits,) = late_days(settings, PAYMENTS)
    assert (waits.day, waits.rows) == (open_day, landed.of(open_day)[1])


def test_only_the_days_asked_for_are_taken_and_the_others_stay_known(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    report = merge(first=FIRST + DAY, last=FIRST + DAY)

    assert [d.day for d in report.days] == [FIRST + DAY]
    assert [d.day for d in late_days(settings, PAYMENTS)] == [FIRST, FIRST + 2 * DAY]
    assert merge().rows == payments.of(FIRST)[1] + payments.of(FIRST + 2 * DAY)[1]
    assert ids(settings, PAYMENTS) == everything(payments)


def test_a_day_that_had_no_admitted_row_is_filled_by_a_commit_that_streams_skip(
    settings: Settings, merge: Merge
) -> None:
    files = sent(3)
    straggler = File("late.json", [e for f in files[:2] for e in f.events])
    landed = write(settings, PAYMENTS, [*files[30:50], straggler, *files[60:]])
    assert landed.of(FIRST)[0] == 0

    merge()

    assert ids(settings, PAYMENTS) == everything(landed)
    merges = merging_commits(settings)
    assert merges
    for commit in merges:
        # Delta's own rule: a commit that takes files out is a change, and is skipped.
        path = f"{settings.lake().path(PAYMENTS.admitted)}/_delta_log/{commit.version:020d}.json"
        assert '{"remove":' in Path(path).read_text()


def test_a_late_copy_of_an_admitted_row_is_a_repeat_and_no_row_is_lost(
    settings: Settings, merge: Merge
) -> None:
    files = sent(1)
    files[5].events.append(files[0].events[0])
    landed = write(settings, PAYMENTS, files)

    merge()

    assert ids(settings, PAYMENTS) == everything(landed)
    assert ids(settings, PAYMENTS).count(0) == 2
    day = first_day(settings)
    assert (day.state, day.repeats) == ("complete", 1)


def test_rows_admitted_meanwhile_are_all_there(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    stop, number = threading.Event(), 0
    newest = START + 3 * DAY + HOUR

    def admit() -> None:
        nonlocal number
        while not stop.is_set():
            number += 1
            row = {"order_id": 10**6 + number, "at": newest, "_file": "live", "_row": number}
            with commit_lock(settings.lake().path(PAYMENTS.admitted)):
                append(settings, PAYMENTS.admitted, [row | {"_ingest_batch": 10**6 + number}])

    live = threading.Thread(target=admit)
    live.start()
    try:
        merge()
    finally:
        stop.set()
        live.join()

    added = list(range(10**6 + 1, 10**6 + 1 + number))
    assert number > 2
    assert ids(settings, PAYMENTS) == everything(payments) + added


def test_a_large_day_is_merged_span_by_span(
    settings: Settings, payments: Landed, merge: Merge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivermark.backfill.late.merge, "ROWS_AT_ONCE", 300)

    merge()

    assert ids(settings, PAYMENTS) == everything(payments)
    assert len(merging_commits(settings)) > 3 * 4


@pytest.mark.usefixtures("payments")
def test_two_merges_at_a_time_are_refused(settings: Settings, merge: Merge) -> None:
    merge()
    with try_merge_lock(settings.lake().path(PENDING_AND_MERGES)) as held:
        assert held
        with pytest.raises(RivermarkError, match="another merge of late rows is running"):
            merge()


def test_a_table_created_again_has_late_rows_of_its_own(
    settings: Settings, payments: Landed, merge: Merge
) -> None:
    merge()
    lake = settings.lake()
    assert rows_merged(lake, PAYMENTS) == len(payments.late)
    for table in PAYMENTS.tables:
        archive_table(lake, table, "then")
    write(settings, PAYMENTS, sent(3))

    assert (merged_through(lake, PAYMENTS), rows_merged(lake, PAYMENTS)) == (-1, 0)
    assert merge().rows == len(payments.late)


@pytest.mark.parametrize("module", ["merge", "merged"])
def test_spark_is_asked_where_rows_are_more_than_the_driver_takes(
    settings: Settings,
    payments: Landed,
    merge: Merge,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"rivermark.backfill.late.{module}.DRIVER_BYTES", 100)
        with pytest.raises(AssertionError, match="Spark was started"):
            merge()

    assert merge().rows == len(payments.late)
    assert ids(settings, PAYMENTS) == everything(payments)
