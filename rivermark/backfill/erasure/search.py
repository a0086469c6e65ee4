"""Search for rows of a person: in tables, in what was put aside, in what is staged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from rivermark.backfill.affected_days import Changed
from rivermark.backfill.erasure import record
from rivermark.backfill.erasure.person import Person
from rivermark.lake.delta import delta_table
from rivermark.lake.erasure import Held, Match, rows_held
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.contract import REPLACED
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.reset import tables_of

TABLES: Final = "tables/"
OUTCOMES: Final = ("late", "quarantine", "raw")


@dataclass
class Holder:
    """A table of the lake that holds rows of the person, and how they are told.

    `table` is its declaration, None for one that was put aside.
    """

    path: str
    place: str
    table: Table | None
    columns: list[str]
    match: Match
    held: Held


class Search:
    """The tables of a lake that hold rows of a person, as they were when it was last refreshed.

    `places` are the places of rows of ingests in their files, by ingest and outcome; `changed` the
    hours of the rows, by table; `staged` the files of rows that are not published yet.
    """

    def __init__(
        self, lake: Lake, topology: Topology, person: Person, on_step: Callable[[str], None]
    ) -> None:
        self._lake = lake
        self._person = person
        self._on_step = on_step
        self._root = Path(filesystem(lake.root)[1])
        self._declared = {t.name: t for s in topology.streams for t in tables_of(s)}
        self.holders: list[Holder] = []
        self.places: dict[str, dict[str, set[record.Place]]] = {}
        self.changed: dict[str, Changed] = {}
        self.staged: list[Path] = []

    def refresh(self, known: Iterable[str] = ()) -> None:
        """Search every table; those that are `known` count also without such a row."""
        self.holders, self.places, self.changed = [], {}, {}
        folders = [log.parent for log in self._root.rglob("_delta_log")]
        # The rows that tell raw rows by their places come before these.
        for folder in sorted(folders, key=lambda f: (f.name.endswith("_raw"), str(f))):
            place = folder.relative_to(self._root).as_posix().removeprefix(TABLES)
            if not place.startswith("ops/"):
                self._on_step(f"table {place}")
                self._add(str(folder), place, is_known=place in known)
        staged = sorted((self._root / "staged").rglob("*.parquet"))
        self.staged = [file for file in staged if self._holds(file)]

    def _add(self, path: str, place: str, *, is_known: bool) -> None:
        names = [column.name for column in delta_table(path).schema().fields]
        columns = self._person.columns_in(names)
        match: Match = self._person.rows_of
        if place.endswith("_raw") and "payload" in names:
            match = self._raw_match(place.removesuffix("_raw"))
        if not columns:
            return
        table = self._declared.get(place)
        beside = (*record.PLACE, "reasons", table.event_time if table is not None else None)
        columns = [*dict.fromkeys((*columns, *(n for n in names if n in beside)))]
        held = rows_held(path, columns, match, lambda rows: self._note(place, table, rows))
        if held.live or held.old or is_known:
            self.holders.append(Holder(path, place, table, columns, match, held))

    def _note(self, place: str, table: Table | None, rows: pa.Table) -> None:
        if table is not None and table.event_time:
            hours = pc.unique(pc.floor_temporal(rows[table.event_time], unit="hour")).to_pylist()
            changed = Changed.in_hours(h.astimezone(UTC) for h in hours if h is not None)
            self.changed[place] = self.changed.get(place, Changed()) | changed
        if not {*record.PLACE} <= {*rows.column_names}:
            return
        outcome = next((each for each in OUTCOMES if place.endswith(f"_{each}")), "admitted")
        ingest = place.removesuffix(f"_{outcome}").removesuffix("_versions")
        places = self.places.setdefault(ingest, {}).setdefault(outcome, set())
        for row in rows.to_pylist():
            # A file that was read again has other rows at the places of its former ones.
            if row["_row"] is not None and REPLACED not in (row.get("reasons") or ()):
                places.add(record.place_of(row))

    def _raw_match(self, ingest: str) -> Match:
        """Raw rows are those of which the rows were made, or whose JSON says a value."""
        both = (self.places.get(ingest, {}), record.erased_places(self._lake, ingest))
        places = {place for outcomes in both for each in outcomes.values() for place in each}

        def match(rows: pa.Table) -> pa.Array:
            own = (record.place_of(row) in places for row in rows.select(record.PLACE).to_pylist())
            listed = pa.array([*own], pa.bool_())
            return pc.or_(listed, self._person.json_rows(rows["payload"]))

        return match

    def _holds(self, file: Path) -> bool:
        with ParquetFile(file) as rows:
            columns = self._person.columns_in(rows.schema_arrow.names)
            batches = rows.iter_batches(columns=columns) if columns else ()
            return any(
                pc.any(self._person.rows_of(pa.Table.from_batches([batch]))).as_py()
                for batch in batches
            )
