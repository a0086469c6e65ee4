"""Days are replaced in every sink of an output, each in its own way, or refused before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from deltalake import DeltaTable
from pyarrow import dataset

from rivermark import Output
from rivermark.backfill.difference import Difference
from rivermark.backfill.publish import check_replaceable, publish_days
from rivermark.backfill.undo import undo
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import OnReplace
from rivermark.sinks import ConsoleSink, DeltaUpsert, FileSink, Sink
from tests.oracles.reprocessings import reprocessing
from tests.unit.backfill.conftest import DAY, STREAM, TIPS, World, tips


@dataclass(frozen=True)
class Journal(ConsoleSink):
    """A target whose rows cannot be replaced."""

    on_replace: ClassVar[OnReplace] = "refuses"


def with_sinks(*sinks: Sink) -> Output:
    return Output(TIPS, sinks=sinks)


def test_an_undo_restores_the_days_in_other_sinks_too_and_says_so(
    world: World, tmp_path: Path
) -> None:
    files = FileSink(str(tmp_path / "out"))
    stream = replace(STREAM, writes=(with_sinks(files, ConsoleSink()),))
    world.append((1, "1.00"))
    world.replaced("wrong", 1, [DAY], (1, "9.00"))

    done = undo(world.settings, stream, "wrong", run_id="undoing")

    for rows in (
        DeltaTable(world.lake.path(TIPS)).to_pyarrow_table(),
        dataset.dataset(tmp_path / "out").to_table(),
    ):
        assert [str(tip) for tip in rows["tip"].to_pylist()] == ["1.00"]
    effects = done.tables[TIPS.name].sinks
    assert effects[files.target] == "replaces days"
    assert effects[ConsoleSink().target] == "skips"
    assert done.as_json()["tables"][TIPS.name]["sinks"] == effects


def test_a_sink_that_refuses_stops_the_replacement_before_a_row_moves(world: World) -> None:
    stream = replace(STREAM, writes=(with_sinks(Journal()),))
    world.append((1, "1.00"))
    world.replaced("wrong", 1, [DAY], (1, "9.00"))

    with pytest.raises(RivermarkError, match="where days cannot be replaced"):
        undo(world.settings, stream, "wrong", run_id="undoing")
    with pytest.raises(RivermarkError, match="use --dry-run"):
        check_replaceable(stream)
    assert DeltaTable(world.lake.path(TIPS)).version() == 2


def test_rows_of_a_table_by_key_are_merged_and_cannot_be_taken_out_again(world: World) -> None:
    output = with_sinks(DeltaUpsert(version="at"))
    stream = replace(STREAM, writes=(output,), kind="append", lateness=timedelta(0))
    world.append((1, "1.00"), (2, "2.00"))
    done = reprocessing(TIPS.name, DAY, DAY, Difference(), id="wrong")

    publish_days(world.lake, stream, output, tips((1, "9.00")), [DAY], done)

    rows = DeltaTable(world.lake.path(TIPS)).to_pyarrow_table()
    assert sorted(str(tip) for tip in rows["tip"].to_pylist()) == ["2.00", "9.00"]
    assert done.tables[TIPS.name].version_after == 2
    with pytest.raises(RivermarkError, match="keeps the latest row of each key"):
        undo(world.settings, stream, "wrong", run_id="undoing")
