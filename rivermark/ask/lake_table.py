"""A table of a lake at a version, as Arrow, Polars, pandas or DuckDB have it. Starts no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from pyarrow import fs

from rivermark.backfill.as_of import parse_version
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import RivermarkError, UnknownStream, WrongUse
from rivermark.model.names import NAME
from rivermark.model.nearest import did_you_mean
from rivermark.settings import Settings

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.compute as pc

    from rivermark.lake.table_rows import TableRows


@dataclass(frozen=True)
class LakeTable:
    """A table at one version, whatever is written meanwhile.

    Only the named `columns` are read, and only files in which `where`, a filter of Arrow, may hold.
    Instants are UTC, money is decimal. Each method raises TableDamaged for a damaged data file.
    `only` are the rows that it has of them: those of a day, where one is asked for.
    """

    name: str
    version: int
    rows: TableRows
    only: pc.Expression | None = None

    def arrow(
        self, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """The rows as an Arrow table; UnknownStream for a column that the table has not."""
        names = self.rows.schema.names
        for column in columns or ():
            if column not in names:
                raise UnknownStream(
                    f"table '{self.name}' has no column '{column}'"
                    f"{did_you_mean(column, names) or ';'} it has {', '.join(names)}"
                )
        if self.only is not None:
            where = self.only if where is None else self.only & where
        chosen = None if columns is None else [*columns]
        try:
            return read_rows(self.rows, columns=chosen, filter=where)
        except pa.ArrowInvalid as error:
            if "Precision is not great enough" not in str(error):
                raise
            raise WrongUse(
                f"table '{self.name}': the filter compares a decimal with a whole number, which "
                "Arrow cannot; write it as Decimal(100)"
            ) from error

    def polars(
        self, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> polars.DataFrame:
        """The rows as a data frame of Polars. Raises RivermarkError where it is not installed."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        frame = polars.from_arrow(self.arrow(columns, where))
        assert isinstance(frame, polars.DataFrame)  # noqa: S101 - a Series is made of an array only
        return frame

    def pandas(
        self, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pandas.DataFrame:
        """The rows as a data frame of pandas. Raises RivermarkError where it is not installed."""
        try:
            import pandas  # noqa: F401 - Arrow's own message does not say what to install
        except ImportError:
            raise _missing("pandas") from None
        return self.arrow(columns, where).to_pandas()

    def duckdb(self) -> duckdb.DuckDBPyRelation:
        """A relation of DuckDB, which reads what is asked of it, when it is asked.

        Of some days their rows are read at once.
        """
        engine = duckdb.connect(":memory:")
        engine.execute("SET TimeZone = 'UTC'")
        rows = self.rows if self.only is None else self.arrow()
        return engine.register("rows", rows).table("rows").set_alias(quoted(self.name))


def table(
    name: str, version: int | str | datetime | None = None, *, home: str | Path | None = None
) -> LakeTable:
    """A table of the lake at a version, at a moment (UTC) such as '2026-03-01T12:00', or now.

        rivermark.table("taxi/hourly_winners").polars()
        rivermark.table("taxi/trips", version=3).arrow(columns=["pickup_at", "fare"])

    `home` is the folder of lake, landing and state; without it that of the environment counts, as
    for the console.

    Raises:
        UnknownStream: There is no such table in the lake.
        VersionNotAvailable: The version was never there, or its files were cleaned away.
        TableDamaged: A file of the log is damaged.
    """
    settings = Settings() if home is None else Settings(home=Path(home))
    return open_version(settings.lake(), name, version)


def open_version(lake: Lake, name: str, version: int | str | datetime | None) -> LakeTable:
    """A table of the lake at a version, as `table`."""
    if not (NAME.fullmatch(name) and lake.exists(name)):
        raise no_table(lake, name)
    at = parse_version(version) if isinstance(version, str) else version
    number = resolve_version(lake, name, at)
    return LakeTable(name, number, dataset_of(delta_table(lake.path(name), number)))


def no_table(lake: Lake, name: str) -> UnknownStream:
    """The error for a name that no table of the lake has, with those that it has."""
    known = sorted(tables_in(lake))
    listed = ", ".join(each for each in known if not each.startswith("ops/"))
    choice = f"there are: {listed}" if listed else f"{lake.root} has no tables yet"
    return UnknownStream(f"no table is named {name!r}{did_you_mean(name, known) or ';'} {choice}")


def tables_in(lake: Lake) -> Iterator[str]:
    """The names of all tables in a lake, declared or not."""
    store, root = filesystem(f"{lake.root}/tables")
    pending = [root]
    while pending:
        folder = pending.pop()
        inside = store.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        folders = [each for each in inside if each.type == fs.FileType.Directory]
        if any(each.base_name == "_delta_log" for each in folders):
            yield folder.removeprefix(root).strip("/")
        else:
            pending += [each.path for each in folders]


def _missing(package: str) -> RivermarkError:
    return RivermarkError(
        f"{package} is not installed: pip install {package}, or ask for .arrow() or .duckdb()"
    )
