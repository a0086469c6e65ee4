"""Writing of a table's data files, as a value that travels to tasks of executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from rivermark.lake.append.data_file import Tree, write_data_file
from rivermark.lake.append.table_features import TableFeatures, features_of
from rivermark.lake.append.text_lengths import Lengths, fit_texts, lengths_of
from rivermark.lake.delta import file_batches
from rivermark.model.errors import RivermarkError


@dataclass(frozen=True)
class TableFiles:
    """The folder or URI of a table, its columns, and how long its texts may be."""

    path: str
    features: TableFeatures
    lengths: Lengths

    def read(
        self, name: str, chosen: Callable[[pa.Table], pa.Table] = lambda rows: rows
    ) -> pa.Table:
        """The rows of one of the files, some of them where `chosen` says so.

        Raises TableDamaged where it is missing or damaged.
        """
        columns, kept = self.features.columns, []
        for batch in file_batches(self.path, name, columns.names):
            rows = chosen(pa.Table.from_batches([batch]))
            # A file may be older than a column, or than digits of it.
            own = pa.schema([field for field in columns if field.name in rows.column_names])
            kept.append(rows.select(own.names).cast(own))
        return pa.concat_tables(kept or [columns.empty_table()])

    def write(self, rows: pa.Table) -> list[Tree]:
        """Write the rows to a new file; returns the action that adds it, nothing of no rows.

        Columns that the rows lack are empty. `TableWriter.append_files_once` commits the actions.

        Raises:
            RivermarkError: The table has no such column, or another type for it, or a text is
                longer than declared.
        """
        fitted = self.fit(rows)
        if fitted is None:
            raise RivermarkError(
                f"the rows do not fit the table {self.path}: it has the columns "
                f"{self.features.columns.to_string(show_field_metadata=False)!r}, they have "
                f"{rows.schema.to_string(show_field_metadata=False)!r}"
            )
        return self.write_fitted(fitted)

    def fit(self, rows: pa.Table) -> pa.Table | None:
        """The rows with the table's columns; None where their types do not agree.

        Raises:
            RivermarkError: A text is longer than its column is declared.
        """
        return self.features.fit(fit_texts(rows, self.lengths) if self.lengths else rows)

    def write_fitted(self, rows: pa.Table) -> list[Tree]:
        """As `write`, of rows that fit."""
        if not rows.num_rows:
            return []
        return [write_data_file(self.path, rows, self.features.skipped_by)]


def files_of(table: DeltaTable) -> TableFiles | None:
    """By a table as delta-rs has opened it; None where it asks more of its writers than columns."""
    stored, protocol = table.metadata(), table.protocol()
    metadata = {
        "schemaString": table.schema().to_json(),
        "partitionColumns": stored.partition_columns,
        "configuration": stored.configuration,
    }
    versions = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    features = features_of(metadata, versions)
    if features is None:
        return None
    return TableFiles(table.table_uri, features, lengths_of(metadata))
