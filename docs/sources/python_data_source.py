"""A source of one's own: lines that a service keeps, by number (docs/sources/python.md)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from rivermark import Contract, Field, Ingest
from rivermark.sources import PythonDataSource

Offset = dict[str, int]
Record = tuple[Any, ...]


class Journal(DataSource):
    """Entries of a journal: an append-only file whose lines are `id,at`."""

    def schema(self) -> str:
        return "id long, at string"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return JournalReader(Path(self.options["path"]))


class JournalReader(SimpleDataSourceStreamReader):
    def __init__(self, path: Path) -> None:
        self.path = path

    def initialOffset(self) -> Offset:
        return {"line": 0}

    def read(self, start: Offset) -> tuple[Iterator[Record], Offset]:
        end = {"line": len(self.path.read_text().splitlines()) if self.path.exists() else 0}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[Record]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return (tuple(line.split(",")) for line in lines[start["line"] : end["line"]])


def journal(path: Path) -> Ingest:
    """The ingest of a journal."""
    return Ingest(
        name="example/journal",
        source=PythonDataSource(data_source=Journal, options={"path": str(path)}),
        contract=Contract(
            fields=(
                Field("id", "long", required=True),
                Field("at", "timestamp", required=True),
            ),
            event_time="at",
            keys=("id",),
        ),
        lateness=timedelta(seconds=10),
        description="Entries of a journal.",
        group="example",
    )
