"""What every sink must do, as tests that its own test module inherits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake.append.table_features import features_for
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.lake import Lake
from rivermark.lake.rows_in_files import InFiles
from rivermark.lake.schema import create_table
from rivermark.model.rows import Rows
from rivermark.model.sink import BatchIdentity, Sink, SinkContext, SinkWriter
from rivermark.model.stream import Output
from rivermark.sinks.delta_append import DeltaAppend
from rivermark.sinks.output import OutputWriter
from tests.kills import Killer
from tests.unit.sinks.conftest import DAY, FARES, NOON, by_ride, context, fares, two_days

LARGE = False
"""Whether all rows come in files, as those of batches do that are too large for the driver."""
EARLIER = fares((1, 0.5), at=NOON - timedelta(hours=1))


def is_folder(place: str) -> bool:
    """Whether a folder exists."""
    return Path(place).is_dir()


@dataclass(frozen=True)
class Target:
    """A sink of fares, and what a consumer finds where it writes to; nothing when it is made.

    `rows` are those of a consumer that drops what comes again by the key which comes with it, where
    the sink delivers at least once. `is_there` says whether a place that `archive` returns exists.
    `waits` says that a consumer waits until the next run has ended what a killed one began.
    """

    sink: Sink
    where: SinkContext
    rows: Callable[[], pa.Table]
    is_there: Callable[[str], bool] = is_folder
    waits: bool = False

    @property
    def keeps_all(self) -> bool:
        """Whether what was written cannot be taken back."""
        return self.sink.on_replace == "skips"

    def open(self) -> SinkWriter:
        """A writer, as a run that starts opens it."""
        return self.sink.open(self.where)

    def batch(self, number: int) -> BatchIdentity:
        """The identity of a batch of its stream."""
        return self.where.origin.batch(number)

    def write(self, rows: pa.Table, batch: int) -> None:
        """Write a batch in a run of its own."""
        writer = self.open()
        writer.write(self.given(rows), self.batch(batch))
        # A process that is killed closes nothing.
        writer.close()

    def write_behind_the_table(self, rows: pa.Table, batch: int) -> None:
        """Write a batch in a run of its own to the table of the output and then to the sink."""
        output = Output(self.where.table, sinks=(self.sink,))
        writer = OutputWriter(Lake(self.where.root), output, self.where.origin)
        if not writer.has(batch):
            writer.write(rows, batch, {})
        writer.close()

    def given(self, rows: pa.Table) -> Rows:
        """Rows as a writer is given them."""
        return self.in_files(rows) if LARGE else rows

    def in_files(self, rows: pa.Table) -> InFiles:
        """Rows too many for the driver: a file for each, in the table if that is their sink's."""
        lake, table = Lake(self.where.root), self.where.table
        folder = lake.path(table) if isinstance(self.sink, DeltaAppend) else f"{lake.root}/large"
        Path(folder).mkdir(parents=True, exist_ok=True)
        files = TableFiles(folder, features_for(rows.schema), {})
        adds = [add for n in range(rows.num_rows) for add in files.write(rows.slice(n, 1))]
        return InFiles(folder, table, adds)

    def write_in_files(self, rows: pa.Table, batch: int) -> None:
        """Write a batch too large for the driver."""
        writer = self.open()
        assert writer.write(self.in_files(rows), self.batch(batch)) in (0, rows.num_rows)
        writer.close()

    def replace(self, rows: pa.Table) -> None:
        """Replace a day as a recompute does: of a sink that skips nothing is called."""
        if not self.keeps_all:
            writer = self.open()
            assert writer.replace(self.given(rows), [DAY], "20240301-a") == rows.num_rows
            writer.close()

    def after_reset(self) -> Target:
        """The same one, as the next generation of its stream writes to it."""
        origin = replace(self.where.origin, generation=1)
        return replace(self, where=replace(self.where, origin=origin))


NewTarget = Callable[[], Target]


class SinkContract(ABC):
    """The contract of `rivermark.model.sink`; `new_target` makes targets, and names the steps.

    Sinks that write at most once keep to it behind the table of their output, and not alone.
    """

    @pytest.fixture
    @abstractmethod
    def new_target(self) -> NewTarget:
        """Makes an empty target at each call; its steps are known to the `killer`."""

    @pytest.fixture
    def new_context(self, tmp_path: Path) -> Callable[[], SinkContext]:
        """A context in a lake of its own, at each call."""
        numbers = iter(range(1000))

        def make() -> SinkContext:
            lake = Lake(str(tmp_path / str(next(numbers))))
            create_table(lake, FARES)
            return context(lake)

        return make

    def test_a_batch_that_is_written_again_is_there_once(self, new_target: NewTarget) -> None:
        target = new_target()
        writer = target.open()
        assert writer.write(target.given(two_days()), target.batch(0)) == 2
        writer.write(target.given(two_days()), target.batch(0))
        writer.close()
        target.write(two_days(), 0)

        assert by_ride(target.rows()) == by_ride(two_days())

    def test_the_target_says_which_batch_it_holds_where_it_can(self, new_target: NewTarget) -> None:
        target = new_target()
        knows = target.sink.delivery.guarantee == "exactly once"
        writer = target.open()
        assert writer.last() is None
        for number in (0, 1):
            writer.write(target.given(fares((number, 1.0))), target.batch(number))
            assert not knows or writer.last() == target.batch(number)
        writer.close()

        for opened, held in (
            (target, target.batch(1) if knows else None),
            (target.after_reset(), None),
        ):
            writer = opened.open()
            assert writer.last() == held
            writer.close()

    def test_a_kill_before_any_step_of_a_batch_leaves_each_row_once(
        self, new_target: NewTarget, killer: Killer
    ) -> None:
        def prepared() -> Target:
            target = new_target()
            target.write(EARLIER, 0)
            return target

        for due, target in killer.before_each(prepared, lambda t: t.write(two_days(), 1)):
            if not target.waits:
                target.rows()  # A reader opens no half file.
            target.write(two_days(), 1)
            updated = [] if target.sink.updates_rows else [EARLIER]
            expected = pa.concat_tables([two_days(), *updated])
            assert by_ride(target.rows()) == by_ride(expected), f"killed before step {due}"
        assert due > 2

    def test_a_kill_before_any_step_of_a_batch_in_files_leaves_each_row_once(
        self, new_target: NewTarget, killer: Killer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rivermark.sinks.upsert_writer.MERGED", 2)
        rows = fares(*((n, 1.0 * n) for n in range(1, 5)))

        def prepared() -> Target:
            target = new_target()
            target.write(EARLIER, 0)
            return target

        for due, target in killer.before_each(prepared, lambda t: t.write_in_files(rows, 1)):
            target.write_in_files(rows, 1)
            updated = [] if target.sink.updates_rows else [EARLIER]
            assert by_ride(target.rows()) == by_ride(pa.concat_tables([rows, *updated])), due
        assert due > 2

    def test_r09_behind_a_table_it_gets_what_the_table_holds_and_not_what_is_computed_again(
        self, new_target: NewTarget, killer: Killer
    ) -> None:
        def prepared() -> Target:
            target = new_target()
            target.write_behind_the_table(EARLIER, 0)
            return target

        # It is given rows as they are; those in files are another test's.
        if LARGE or new_target().sink.writes_table:
            return
        seen = set()
        for due, target in killer.before_each(
            prepared, lambda t: t.write_behind_the_table(two_days(), 1)
        ):
            # The service or the lookup that the build asks answers otherwise after the restart.
            target.write_behind_the_table(two_days(shift=5.0), 1)
            table = DeltaTable(Lake(target.where.root).path(FARES)).to_pyarrow_table()
            seen |= set(table["fare"].to_pylist())
            held = {(row["ride"], row["at"]): row for row in by_ride(table)}
            if target.sink.updates_rows:
                del held[1, NOON - timedelta(hours=1)]
            assert by_ride(target.rows()) == by_ride(table.from_pylist([*held.values()])), due
        assert due > 2
        assert {0.5, 1.0, 2.0} <= seen

    def test_a_kill_before_any_step_of_a_replacement_leaves_the_days_replaced(
        self, new_target: NewTarget, killer: Killer
    ) -> None:
        def prepared() -> Target:
            target = new_target()
            target.write(two_days(), 0)
            return target

        again = fares((1, 9.0))
        for due, target in killer.before_each(prepared, lambda t: t.replace(again)):
            target.rows()
            target.replace(again)
            expected = {1: 1.0 if target.keeps_all else 9.0, 2: 2.0}
            assert {r["ride"]: r["fare"] for r in by_ride(target.rows())} == expected, due
        assert due > 2 or target.keeps_all

    def test_days_are_replaced_by_what_a_recompute_returns_and_other_days_stay(
        self, new_target: NewTarget
    ) -> None:
        target = new_target()
        target.write(two_days(), 0)
        for _ in range(2):
            target.replace(fares((1, 7.0), (3, 3.0)))

        replaced = [(1, 1.0), (2, 2.0)] if target.keeps_all else [(1, 7.0), (2, 2.0), (3, 3.0)]
        assert [(r["ride"], r["fare"]) for r in by_ride(target.rows())] == replaced
        target.write(fares((4, 4.0)), 1)
        assert len(by_ride(target.rows())) == len(replaced) + 1

    def test_a_reset_stream_begins_with_an_empty_target_unless_that_keeps_all(
        self, new_target: NewTarget
    ) -> None:
        target = new_target()
        target.write(two_days(), 0)
        places = target.sink.archive(target.where, "20240301T000000Z")

        assert all(target.is_there(place) for place in places)
        if not target.sink.writes_table:
            kept = 2 if target.keeps_all else 0
            assert target.rows().num_rows == kept
            target.after_reset().write(two_days(), 0)
            assert target.rows().num_rows == kept + 2
