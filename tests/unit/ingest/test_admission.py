"""Admission opens whatever became of the logs of its rarely written tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark import Contract, Field, Ingest
from rivermark.ingest.admission import Admission
from rivermark.ingest.lines import KnownSplits
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.sink import Origin
from rivermark.model.source import PlannedSplit, Records
from rivermark.model.table import Table
from tests.unit.model.declared import ingest

RIDES = ingest()
BEGAN = datetime.now(UTC) - timedelta(days=90)
ORIGIN = Origin(RIDES.name, 0, BEGAN, "run")
XY = Contract(
    fields=(Field("x", "timestamp", ("ex",), required=True), Field("y", "string")), event_time="x"
)
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path))
    for table in (*RIDES.tables, INGEST_FILES):
        create_table(found, table)
    return found


def commit(lake: Lake, table: Table, batch: int, stream: str = RIDES.name, **told: Any) -> None:
    """One empty commit of that stream and batch."""
    rows = DeltaTable(lake.path(table)).to_pyarrow_table().slice(0, 0)
    writer = TableWriter(lake, table, Origin(stream, 0, BEGAN, "run"))
    writer.append_once(cast(pa.Table, rows), batch, metadata=told)


def trim(lake: Lake, table: Table) -> None:
    """Leave only the newest commit in the log, made after a day on which nothing else was."""
    DeltaTable(lake.path(table)).create_checkpoint()
    commits = sorted((Path(lake.path(table)) / "_delta_log").glob("*.json"))
    for path in commits[:-1]:
        path.unlink()


def open_admission(lake: Lake, declared: Ingest = RIDES) -> Admission:
    """Spark is not used before the first batch."""
    return Admission(cast(Any, None), lake, declared, declared.source.open(str(lake.root)), ORIGIN)


def test_a_new_ingest_has_no_progress(lake: Lake) -> None:
    assert open_admission(lake).progress == Progress()


def test_the_progress_is_that_of_the_newest_raw_commit(lake: Lake) -> None:
    for batch in range(3):
        clock = Progress(NOON + timedelta(hours=batch), doubted=batch == 2)
        commit(lake, RIDES.raw, batch, clock=clock.to_json())

    assert open_admission(lake).progress == Progress(NOON + timedelta(hours=2), doubted=True)


def test_a_trimmed_log_of_a_shared_or_rare_table_does_not_stop_admission(
    lake: Lake,
) -> None:
    commit(lake, INGEST_FILES, 0)
    for batch in range(4):
        commit(lake, INGEST_FILES, batch, stream="test/busy")
        commit(lake, RIDES.quarantine, batch)
    trim(lake, INGEST_FILES)
    trim(lake, RIDES.quarantine)
    with pytest.raises(ReplayUnprovable):
        TableWriter(lake, INGEST_FILES, ORIGIN)
    # The batch that may be unfinished began long after what the logs still show.
    commit(lake, RIDES.raw, 9, clock=Progress(NOON).to_json())
    days_later(lake, RIDES.raw, timedelta(days=2))

    assert open_admission(lake).progress == Progress(NOON)


def days_later(lake: Lake, table: Table, by: timedelta) -> None:
    """Let the newest commit have been made so much later than it was."""
    path = max((Path(lake.path(table)) / "_delta_log").glob("*.json"))
    now = int(datetime.now(UTC).timestamp() * 1000)
    text = path.read_text()
    at = text.split('"timestamp":')[1].split(",")[0].split("}")[0]
    path.write_text(
        text.replace(f'"timestamp":{at}', f'"timestamp":{now + int(by.total_seconds()) * 1000}')
    )
    path.with_suffix(".crc").unlink(missing_ok=True)  # It was made for the other entry.


def test_what_is_known_of_a_file_is_held_once_for_all_of_its_rows() -> None:
    splits = [
        PlannedSplit(
            name=name,
            path=name,
            size=1,
            format="csv",
            modified_at=NOON,
            landed_at=NOON,
            batch=0,
            **more,
        )
        for name, more in (
            ("a.csv", {"columns": json.dumps([*map(str, range(1_000))]), "head": "0," * 1_000}),
            ("ü.json", {}),
            ("empty", {"columns": "[]"}),
        )
    ]
    kinds = pa.schema({"_split": pa.int32(), "_row": pa.int64(), "payload": pa.string()})
    rows = pa.table([[1, 1, 0, 1] * 1_000, range(4_000), ["1,2"] * 4_000], schema=kinds)

    known = KnownSplits.of(splits, NOON, lambda split: True).only(["ü.json", "a.csv"])
    lines = known.lines(Records(("ü.json", "a.csv"), rows))
    assert lines["_file"].to_pylist() == ["a.csv", "a.csv", "ü.json", "a.csv"] * 1_000
    assert lines.nbytes < 100 * lines.num_rows


@pytest.mark.parametrize(
    ("columns", "is_header"),
    [
        (["x", "y"], True),
        (["Other", "Y", "X"], True),
        (["ex", "y"], True),
        (["y", "2024-03-01T10:00:00Z"], False),
        ([], False),
    ],
)
def test_n032_a_header_without_a_required_column_may_be_a_record(
    lake: Lake, columns: list[str], is_header: bool
) -> None:
    line = ",".join(columns)
    split = PlannedSplit(
        name="a.csv",
        path="a.csv",
        size=1,
        format="csv",
        modified_at=NOON,
        landed_at=NOON,
        batch=0,
        columns=json.dumps(columns),
        head=line,
    )
    admission = open_admission(lake, replace(RIDES, name="test/xy", contract=XY))
    known = KnownSplits.of([split], NOON, admission._is_head)
    assert known.rows["_head"].to_pylist() == [line if is_header else None]
