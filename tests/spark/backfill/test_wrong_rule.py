"""Story: a wrong tip rule ships and runs two days; it is rehearsed, replaced, undone, replaced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark import Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.difference import HIDDEN
from rivermark.backfill.follow_ups import FollowUps, follow_up
from rivermark.backfill.recompute import Order, rehearse
from rivermark.backfill.recompute import replace as put
from rivermark.backfill.registry import newest_records
from rivermark.backfill.reprocess import what_if
from rivermark.backfill.result import Reprocessing
from rivermark.backfill.undo import undo
from rivermark.lake.log import CommitLog
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.stream import table_of
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.backfill.fares import (
    DAY_ONE,
    DAY_TWO,
    Fare,
    counted,
    doubled,
    fares_of,
    oracle,
    published,
    rows_at,
    stream_in,
)

pytestmark = pytest.mark.spark

WRONG = replace(DRIVER_TIPS, build=doubled)
RIGHT = replace(DRIVER_TIPS, build=counted, parameters={"times": 1})
TOPOLOGY = Topology([WRONG, HOURLY_WINNERS])
TIPS, FARES = DRIVER_TIPS.name, table_of(CLEAN_FARES).name
THIRD = fares_of(3)
BOTH = (*fares_of(1), *fares_of(2))
ANCIENT: Fare = (1, 1, BOTH[0][2] - timedelta(days=300), Decimal("2.00"))
STRAY: Fare = (7777, 1, BOTH[5][2], Decimal("500.00"))
LATER: Fare = (9999, 1, THIRD[0][2] + timedelta(hours=12), Decimal("1.00"))


@dataclass
class Story:
    """What happened, chapter by chapter: the published rows, versions and reports."""

    settings: Settings
    versions: dict[str, int] = field(default_factory=dict)
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    done: dict[str, Reprocessing] = field(default_factory=dict)
    followed: FollowUps = field(default_factory=FollowUps)
    winners: list[tuple[Any, ...]] = field(default_factory=list)
    refused: str = ""

    def keep(self, chapter: str, done: Reprocessing | None = None) -> None:
        """Remember what is published now."""
        self.rows[chapter] = published(self.settings)
        log = CommitLog(self.settings.lake().path(table_of(RIGHT)))
        self.versions[chapter] = log.versions()[-1]
        if done is not None:
            self.done[chapter] = done


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    settings = Settings(home=tmp_path_factory.mktemp("wrong rule"))
    told = Story(settings)
    for fares in ([ANCIENT, *fares_of(1)], fares_of(2), THIRD[:6]):
        stream_in(settings, *fares)
    run_bounded(spark, settings, TOPOLOGY, TOPOLOGY.streams, run_id="wrong")
    told.keep("wrong")

    order = Order(stream=RIGHT, first=DAY_ONE, last=DAY_TWO, run_id="correction")
    told.keep("rehearsed", rehearse(spark, settings, order))
    pinned = replace(order, as_of=dict(told.done["rehearsed"].inputs))
    # What comes from here on is not in the pinned versions; the live stream goes on with it.
    stream_in(settings, STRAY, LATER)
    told.keep("replaced", put(spark, settings, pinned))
    told.followed = follow_up(
        BackfillContext(settings=settings, topology=TOPOLOGY, spark=lambda: spark, run_id="follow"),
        told.done["replaced"],
    )
    told.winners = winners(settings)
    told.keep("undone", undo(settings, RIGHT, told.done["replaced"].id, run_id="doubt"))
    told.keep("replaced again", put(spark, settings, pinned))
    told.keep("rehearsed again", rehearse(spark, settings, pinned))
    told.keep("thrice", what_if(spark, settings, pinned, {"times": "3"}))
    wrong = {"build": "tests.spark.backfill.fares:doubled"}
    told.keep("other code", what_if(spark, settings, pinned, wrong))
    with pytest.raises(PartitionStillOpen) as refused:
        put(spark, settings, replace(order, last=DAY_TWO + timedelta(days=1)))
    told.refused = str(refused.value)
    return told


def winners(settings: Settings) -> list[tuple[Any, ...]]:
    """Hours and the most tips in each."""
    table = DeltaTable(settings.lake().path(table_of(HOURLY_WINNERS))).to_pyarrow_table()
    names = ("window_start", "tips")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


def outside(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What the stream wrote of other days: of the third one, and of a stray date."""
    return [row for row in rows if row[1].date() not in (DAY_ONE, DAY_TWO)]


def test_the_rehearsal_tells_every_difference_and_touches_nothing(story: Story) -> None:
    done = story.done["rehearsed"].tables[TIPS]

    assert story.rows["wrong"] == sorted(oracle(ANCIENT, *BOTH, *THIRD[:4], times=2))
    assert story.rows["rehearsed"] == story.rows["wrong"]
    assert story.versions["rehearsed"] == story.versions["wrong"] == done.version_before
    assert done.side is not None
    assert rows_at(done.side) == oracle(*BOTH)
    found = done.difference
    assert (found.added, found.removed, found.changed) == (0, 0, len(oracle(*BOTH)))
    assert found.columns == {"tips": found.changed}
    sums = {s.day: (s.before, s.after) for s in found.sums if s.column == "tips"}
    of_day = {day: sum(f[3] for f in BOTH if f[2].date() == day) for day in (DAY_ONE, DAY_TWO)}
    assert sums == {day: (2 * tips, tips) for day, tips in of_day.items()}
    assert {sample.key["driver_id"] for sample in found.samples} == {HIDDEN}


def test_the_replacement_reads_what_the_rehearsal_read_and_leaves_other_days(story: Story) -> None:
    assert story.done["replaced"].inputs == story.done["rehearsed"].inputs == {FARES: 3}
    assert story.rows["replaced"] == sorted([*oracle(*BOTH), *outside(story.rows["wrong"])])
    assert {row[1].date() for row in outside(story.rows["wrong"])} == {
        ANCIENT[2].date(),
        THIRD[0][2].date(),
    }


def test_winners_downstream_follow_in_the_order_of_lineage(story: Story) -> None:
    best: dict[Any, Decimal] = {}
    for _, hour, tips, _ in oracle(*BOTH):
        best[hour] = max(best.get(hour, Decimal(0)), tips)

    assert [done.stream for done in story.followed.done] == [HOURLY_WINNERS.name]
    assert story.followed.done[0].because == story.done["replaced"].id
    of_the_days = [w for w in story.winners if DAY_ONE <= w[0].date() <= DAY_TWO]
    assert of_the_days == sorted(best.items())


def test_an_undo_brings_the_old_rows_back_and_a_second_replacement_the_new_ones(
    story: Story,
) -> None:
    assert story.rows["undone"] == story.rows["wrong"]
    assert story.rows["replaced again"] == story.rows["replaced"]
    assert story.versions["replaced again"] == story.versions["wrong"] + 3


def test_a_query_as_of_before_still_gives_the_old_answer(story: Story) -> None:
    for chapter in ("wrong", "replaced", "undone"):
        assert published(story.settings, story.versions[chapter]) == story.rows[chapter]


def test_the_same_pins_give_the_same_file_byte_for_byte(story: Story) -> None:
    def written(chapter: str) -> list[bytes]:
        side = story.done[chapter].tables[TIPS].side
        assert side is not None
        return [file.read_bytes() for file in Path(side).glob("*.parquet")]

    assert len(written("rehearsed")) == 1
    assert written("rehearsed again") == written("rehearsed")
    assert story.done["rehearsed again"].same


def test_a_what_if_is_compared_and_published_rows_stay(story: Story) -> None:
    for chapter, times in (("thrice", 3), ("other code", 2)):
        done = story.done[chapter]
        side = done.tables[TIPS].side
        assert done.kind == "what-if"
        assert side is not None
        assert rows_at(side) == oracle(*BOTH, times=times)
        assert not done.same
    assert story.done["thrice"].parameters == {"times": "3"}
    assert story.rows["other code"] == story.rows["replaced again"]


def test_what_was_done_is_on_record_with_the_versions_used(story: Story) -> None:
    records = [r for r in newest_records(story.settings.lake()) if r.table == TIPS]

    assert [r.kind for r in reversed(records)] == [
        "rehearsed",
        "replaced",
        "undone",
        "replaced",
        "rehearsed",
        "what-if",
        "what-if",
    ]
    replaced, undone = records[-2], records[-3]
    assert replaced.inputs == {FARES: 3}
    assert replaced.version_before == story.versions["wrong"]
    assert replaced.version_after == story.versions["replaced"]
    assert replaced.code.startswith("tests.spark.backfill.fares:counted@")
    assert (replaced.conflicts, replaced.commits_meanwhile) == (0, 0)
    assert undone.because == replaced.id
    assert undone.inputs == {TIPS: story.versions["wrong"]}


def test_a_day_that_is_still_open_is_refused_with_the_watermark(story: Story) -> None:
    assert "2020-01-04 is still open" in story.refused
    assert "watermark" in story.refused
