"""The record of erasures: whose rows went from where, by whom and when, without saying who it is.

`ops/erasures` has a row for each place of an erasure when it begins, before the first row goes, and
one when it is done. `ops/erased_rows` has the place in its file of each row of an ingest, by which
files go on to add up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc

from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.system_tables import append_rows
from rivermark.model.table import Table

ERASURES: Final = Table(
    name="ops/erasures",
    schema=(
        "erasure string, at timestamp, state string, person array<string>, place string, rows long,"
        " old_files long, run string, by string, because string"
    ),
    description="Each erasure of a person's rows: digests of the values, places, rows, by whom.",
    event_time="at",
)
ERASED_ROWS: Final = Table(
    name="ops/erased_rows",
    schema=(
        "erasure string, stream string, outcome string, _file string, _ingest_batch long, _row long"
    ),
    description="The places in their files of rows of ingests that were erased, by outcome.",
)

PLACE: Final = ("_file", "_ingest_batch", "_row")
Place = tuple[str, int, int]
"""A row of an ingest: its file, its batch, its place in the file."""


def begin(lake: Lake, rows: Sequence[dict[str, Any]]) -> None:
    """Record what is going to be erased, a row for each place."""
    _append(lake, "begun", rows)


def finish(lake: Lake, rows: Sequence[dict[str, Any]]) -> None:
    """Record what was erased, a row for each place."""
    _append(lake, "done", rows)


def unfinished(lake: Lake, person: Sequence[str]) -> set[str]:
    """The places at which erasures of the same values began that were not finished."""
    if not lake.exists(ERASURES):
        return set()
    rows = read_rows(dataset_of(delta_table(lake.path(ERASURES)))).to_pylist()
    own = [row for row in rows if row["person"] == [*person]]
    last = max((row["at"] for row in own if row["state"] == "done"), default=None)
    return {row["place"] for row in own if last is None or row["at"] > last}


def erased_places(lake: Lake, stream: str) -> dict[str, set[Place]]:
    """The places of the erased rows of an ingest, by outcome."""
    if not lake.exists(ERASED_ROWS):
        return {}
    own = pc.field("stream") == stream
    places: dict[str, set[Place]] = {}
    for row in read_rows(dataset_of(delta_table(lake.path(ERASED_ROWS))), filter=own).to_pylist():
        places.setdefault(row["outcome"], set()).add(place_of(row))
    return places


def note_places(
    lake: Lake, erasure: str, places: Mapping[str, Mapping[str, Collection[Place]]]
) -> None:
    """Record the places of rows before they go, by ingest and outcome; what is known stays."""
    rows = []
    for stream, outcomes in places.items():
        known = erased_places(lake, stream)
        for outcome, each in outcomes.items():
            rows += [
                {
                    "erasure": erasure,
                    "stream": stream,
                    "outcome": outcome,
                    **dict(zip(PLACE, place, strict=True)),
                }
                for place in sorted({*each} - known.get(outcome, set()))
            ]
    append_rows(lake, ERASED_ROWS, rows, {"erasure": erasure})


def place_of(row: dict[str, Any]) -> Place:
    """The place of a row of an ingest's tables."""
    return row["_file"], row["_ingest_batch"], row["_row"]


def _append(lake: Lake, state: str, rows: Sequence[dict[str, Any]]) -> None:
    now = datetime.now(UTC)
    append_rows(
        lake, ERASURES, [{**row, "state": state, "at": now} for row in rows], {"erasure": state}
    )
