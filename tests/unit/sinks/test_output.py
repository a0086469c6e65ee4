"""Several sinks of one output, and declarations that no sink could keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from rivermark import Daily, DeclarationError, Output, Stream, Table, Topology
from rivermark.backfill.maintenance import kept_tables
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.rows import Rows, as_rows
from rivermark.model.sink import BatchIdentity, Delivery, OnReplace
from rivermark.runtime.query.append import AppendHost
from rivermark.runtime.supervision.reset import tables_of
from rivermark.settings import Settings
from rivermark.sinks import (
    ConsoleSink,
    DeltaAppend,
    DeltaUpsert,
    FileSink,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.sinks.output import OutputWriter, replace_in_others, sinks_of
from tests.kills import Killed, Killer
from tests.unit.sinks.conftest import COMMIT, DAY, FARES, by_ride, context, fares, of_json

PERSONAL = Table(
    name="test/named",
    schema=FARES.schema,
    description="Fares.",
    personal=("fare",),
    event_time="at",
)
SOURCE = Table(name="test/source", schema=FARES.schema, description="s", event_time="at")


@dataclass(frozen=True)
class Sent(Sink):
    """A target that cannot say what it holds, and fails when it is told to."""

    rows: list[int] = field(default_factory=list, hash=False)
    fails: list[bool] = field(default_factory=list, hash=False)
    closed: list[bool] = field(default_factory=list, hash=False)
    seen: list[int] = field(default_factory=list, hash=False)

    delivery: ClassVar[Delivery] = Delivery("at least once", "sent again after a kill")
    on_replace: ClassVar[OnReplace] = "skips"

    @property
    def target(self) -> str:
        return "a service"

    def open(self, context: SinkContext) -> SinkWriter:
        return _Sender(self)


class _Sender(SinkWriter):
    def __init__(self, sink: Sent) -> None:
        self._sink = sink

    def last(self) -> BatchIdentity | None:
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        if self._sink.fails and self._sink.fails.pop():
            raise Killed
        self._sink.rows.append(identity.batch)
        self._sink.seen.append(as_rows(rows).count())
        return 0

    def close(self) -> None:
        self._sink.closed.append(True)
        if self._sink.fails and self._sink.fails.pop():
            raise ConnectionError


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path))
    create_table(made, FARES)
    return made


def opened(lake: Lake, *sinks: Sink) -> OutputWriter:
    return OutputWriter(lake, Output(FARES, sinks=sinks), context(lake).origin)


def test_a_batch_of_which_a_sink_was_killed_is_completed(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = Sent(fails=[True])
    sinks = (ConsoleSink(rows=1), sent, FileSink())
    writer = opened(lake, *sinks)
    with pytest.raises(Killed):
        writer.write(fares((1, 1.0), (2, 2.0)), 0, {})
    again = opened(lake, *sinks)
    assert again.table_has(0)
    assert not again.has(0)
    again.write(fares((1, 1.0), (2, 2.0)), 0, {})

    assert DeltaTable(lake.path(FARES)).to_pyarrow_table().num_rows == 2
    assert len(list(Path(lake.root).glob("exports/test/fares/day=*/*.parquet"))) == 1
    assert sent.rows == [0]
    # At most once: whether the killed run had printed the batch is not known.
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("joined", [False, True])
def test_r09_a_second_sink_gets_what_the_table_holds_and_not_what_is_computed_again(
    lake: Lake, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.lake.maintenance.compaction.FEWEST", 2)
    sent = Sent()
    writer = opened(lake, sent, FileSink(format="jsonl"))
    writer.write(fares((0, 0.0)), 0, {})
    sent.fails.append(True)
    with pytest.raises(Killed):
        writer.write(fares((1, 1.0), (2, 1.0)), 1, {})
    if joined:
        assert DeltaTable(lake.path(FARES)).optimize.compact()["numFilesRemoved"] == 2
    # The service that the build asks answers otherwise after the restart, or with fewer rows.
    again = opened(lake, sent, FileSink(format="jsonl"))
    again.write(fares((1, 2.0)), 1, {})
    again.write(fares((3, 3.0)), 2, {})

    table = DeltaTable(lake.path(FARES)).to_pyarrow_table()
    files = sorted(Path(lake.root).glob("exports/test/fares/day=*/*.jsonl"))
    exported = of_json(line for path in files for line in path.read_bytes().splitlines())
    assert by_ride(exported) == by_ride(table)
    assert [row["fare"] for row in by_ride(exported)] == [0.0, 1.0, 1.0, 3.0]
    assert sent.seen == [1, 2, 1]


def test_r09_rows_of_a_batch_that_were_cleaned_away_are_not_guessed(lake: Lake) -> None:
    with pytest.raises(Killed):
        opened(lake, Sent(fails=[True]), FileSink()).write(fares((1, 1.0)), 0, {})
    for path in Path(lake.path(FARES)).glob("*.parquet"):
        path.unlink()
    with pytest.raises(ReplayUnprovable, match=r"holds batch 0 .* its file .* reset test/fares"):
        opened(lake, Sent(), FileSink()).write(fares((1, 2.0)), 0, {})


def test_the_console_shows_no_batch_twice_before_whatever_step_a_run_is_killed(
    tmp_path: Path, killer: Killer, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (*COMMIT, "rivermark.sinks.console._Writer.write"):
        killer.before(step)
    due, is_killed = 0, True
    while is_killed:
        due += 1
        lake = Lake(str(tmp_path / str(due)))
        create_table(lake, FARES)
        writer = opened(lake, ConsoleSink())
        is_killed = killer.kills(due, partial(writer.write, fares((1, 1.0)), 0, {}))
        again = opened(lake, ConsoleSink())
        is_lost = is_killed and again.table_has(0)
        again.write(fares((1, 1.0)), 0, {})

        assert DeltaTable(lake.path(FARES)).to_pyarrow_table().num_rows == 1, due
        # Only where the kill came between the table's commit and the console nothing is shown.
        assert capsys.readouterr().out.count("ride=1") == (0 if is_lost else 1), due
    assert due > len(COMMIT) + 1


def test_the_console_shows_some_rows_of_a_new_batch_and_no_personal_value(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    create_table(lake, PERSONAL)
    output = Output(PERSONAL, sinks=(ConsoleSink(rows=1),))
    writer = OutputWriter(lake, output, context(lake, PERSONAL).origin)
    for _ in range(2):
        writer.write(fares((1, 1.5), (2, 2.5)), 3, {})

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "test/named, batch 3: 2 rows"
    assert len(shown) == 2
    assert "ride=1" in shown[1]
    assert "fare=***" in shown[1]


def test_each_sink_is_closed_at_the_end_of_a_run_whatever_another_does(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    one, other = Sent(fails=[True]), Sent(fails=[True])
    declared = stream(reads=(SOURCE,), writes=(Output(FARES, sinks=(one, other)),))
    host = AppendHost(cast(SparkSession, None), settings, declared, "run")
    assert one.closed == other.closed == []
    with pytest.raises(ConnectionError):
        host.stop()

    assert one.closed == other.closed == [True]
    host.stop()


def test_a_recompute_reaches_the_sinks_that_can_replace_days(lake: Lake) -> None:
    output = Output(FARES, sinks=(Sent(), FileSink(format="jsonl")))
    origin = context(lake).origin
    OutputWriter(lake, output, origin).write(fares((1, 1.0)), 0, {})
    replace_in_others(lake, output, origin, fares((1, 8.0)), [DAY], "20240301-a")

    [file] = Path(lake.root).glob("exports/test/fares/day=*/*.jsonl")
    assert '"fare":8.0' in file.read_text()


def test_an_output_writes_its_table_whatever_else_it_writes() -> None:
    assert sinks_of(Output(FARES)) == (DeltaAppend(),)
    upsert, console, files = DeltaUpsert(version="at"), ConsoleSink(), FileSink()
    assert sinks_of(Output(FARES, sinks=(console, files))) == (DeltaAppend(), files, console)
    assert sinks_of(Output(FARES, sinks=(files, upsert))) == (upsert, files)
    with pytest.raises(DeclarationError, match="two sinks write the same table"):
        Output(FARES, sinks=(DeltaAppend(), upsert))


def stream(**declared: Any) -> Stream:
    return Stream(build=lambda rows, *others: rows, group="test", lateness=timedelta(1), **declared)


def test_a_table_whose_rows_are_updated_is_looked_up_and_not_followed() -> None:
    latest = Table(
        name="test/latest",
        schema=FARES.schema,
        description="l",
        event_time="at",
        keys=("ride",),
        days=FARES.days,
    )
    upserting = stream(reads=(SOURCE,), writes=(Output(latest, sinks=(DeltaUpsert("at"),)),))
    for reader in (
        stream(reads=(upserting,), writes=PERSONAL),
        stream(reads=(latest,), writes=PERSONAL),
        stream(reads=(latest,), writes=FARES, kind="refresh"),
    ):
        with pytest.raises(DeclarationError, match=r"Look the table up whole \(static="):
            Topology([upserting, reader])

    Topology([upserting, stream(reads=(SOURCE,), static=(latest,), writes=PERSONAL)])
    with pytest.raises(DeclarationError, match="replaced by whole days"):
        stream(
            reads=(SOURCE,),
            writes=(Output(latest, sinks=(DeltaUpsert("at"),)),),
            kind="refresh",
        )


def test_tombstones_are_maintained_and_reset_with_their_table() -> None:
    sinks = (DeltaUpsert("at", deleted="gone"),)
    upserting = stream(reads=(SOURCE,), writes=(Output(FARES, sinks=sinks),))

    assert [t.name for t in tables_of(upserting)] == ["test/fares", "test/fares_tombstones"]
    assert "test/fares_tombstones" in kept_tables(Topology([upserting]))


def test_csv_refuses_nested_columns() -> None:
    nested = Table(
        name="test/nested",
        schema=StructType([StructField("rides", ArrayType(LongType()))]),
        description="n",
    )
    with pytest.raises(DeclarationError, match="CSV cannot hold the nested column 'rides'"):
        Output(nested, sinks=(FileSink(format="csv"),))


def test_m035_files_refuse_a_column_of_the_name_that_their_folders_have() -> None:
    odd = Table(
        name="test/odd",
        schema="day string, at timestamp, n long",
        description="o",
        days=Daily("at", DAY),
    )
    with pytest.raises(DeclarationError, match=r"folders day=YYYY-MM-DD, .* a column 'day' of its"):
        Output(odd, sinks=(FileSink(),))
    Output(replace(odd, days=None), sinks=(FileSink(),))
