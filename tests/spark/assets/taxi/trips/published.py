"""The trip tables after a run, read without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.taxi.trips.streams import STREAMS
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

Row = dict[str, Any]


@dataclass(frozen=True)
class Published:
    """A lake into which trip files flow."""

    spark: SparkSession
    settings: Settings

    @property
    def landing(self) -> Path:
        """Where trip files land."""
        return Path(self.settings.landing_root) / "taxi" / "trips"

    def drain(self, run_id: str, streams: Sequence[AnyStream] = STREAMS) -> None:
        """Take what landed through these streams, by default all of the domain."""
        run_bounded(self.spark, self.settings, Topology(STREAMS), streams, run_id=run_id)

    def rows(self, table: str, **where: object) -> list[Row]:
        """Rows of a table whose columns have these values."""
        found = DeltaTable(self.settings.lake().path(table)).to_pyarrow_table()
        for name, value in where.items():
            found = found.filter(pc.field(name) == value)
        return list(found.to_pylist())

    def trips(self, name: str) -> list[Row]:
        """The records of one trip file, in its order."""
        return sorted(self.rows("taxi/trips", file=name), key=lambda r: int(r["row"]))

    def set_aside(self, name: str) -> list[Row]:
        """What was set aside of one trip file, in its order."""
        found = self.rows("taxi/trip_records_quarantine", _file=name)
        return sorted(found, key=lambda r: int(r["_row"]))


def keyed(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    """Rows by their keys; two rows of one key are an error."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        assert key not in found, f"two rows of {key}"
        found[key] = row
    return found


def agree(rows: Iterable[Row], expected: dict[tuple[Any, ...], Row], *keys: str) -> None:
    """Assert that a table holds exactly the expected rows, in the columns that the oracle knows."""
    found = keyed(rows, *keys)
    assert found.keys() == expected.keys()
    wrong = {
        key: (mine, {name: found[key][name] for name in mine})
        for key, mine in expected.items()
        if any(found[key][name] != value for name, value in mine.items())
    }
    assert not wrong, f"{len(wrong)} rows differ, such as {next(iter(wrong.items()))}"


def copy(source: Path, target: Path) -> None:
    """Land one file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def land_whole_files(source: Path, trips: Path) -> None:
    """Land every trip file of a folder where its ingest looks for it."""
    for path in sorted(source.iterdir()):
        if path.name.startswith("debs2015"):
            copy(path, trips.parent / "debs" / path.name)
        elif path.name.startswith("nab"):
            copy(path, trips.parent / "passengers" / path.name)
        elif path.name.startswith("seaborn_taxis"):
            copy(path, trips.parent / "seaborn" / path.name)
        elif path.name.startswith(("green", "yellow", "gx_yellow", "seaborn_raw")):
            service = "green" if path.name.startswith("green") else "yellow"
            copy(path, trips / service / path.name)
