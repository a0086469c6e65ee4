"""A sample of each batch's rows on standard output, to look at a prototype."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.printable import printable
from rivermark.model.rows import as_rows
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Rows,
    Sink,
    SinkContext,
    SinkWriter,
)

if TYPE_CHECKING:
    from rivermark.model.table import Table


@declared("sink")
@dataclass(frozen=True)
class ConsoleSink(Sink):
    """Prints up to `rows` rows of each batch; personal columns are masked."""

    rows: int = 10

    delivery: ClassVar[Delivery] = Delivery(
        "at most once", "after the table's commit, and not again where a batch is repeated"
    )
    on_replace: ClassVar[OnReplace] = "skips"

    @property
    def target(self) -> str:
        """The console, and how much it shows."""
        return f"console, {self.rows} rows a batch"

    def check(self, table: Table) -> None:
        """Refuse a sample of nothing."""
        if self.rows < 1:
            raise DeclarationError(
                f"table '{table.name}': a ConsoleSink needs at least one row; give rows=1 or more"
            )

    def open(self, context: SinkContext) -> SinkWriter:
        """A writer to this process's standard output."""
        return _Writer(self.rows, context.table)


class _Writer(SinkWriter):
    def __init__(self, most: int, table: Table) -> None:
        self._most = most
        self._table = table

    def last(self) -> BatchIdentity | None:
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        batch_rows = as_rows(rows)
        first = next(batch_rows.pieces(self._table.schema.fieldNames()), None)
        sample = [] if first is None else first.slice(0, self._most).to_pylist()
        lines = [f"{self._table.name}, batch {identity.batch}: {batch_rows.count()} rows"]
        lines += [f"  {self._shown(row)}" for row in sample]
        sys.stdout.write("\n".join(lines) + "\n")
        return batch_rows.count()

    def _shown(self, row: Mapping[str, Any]) -> str:
        hidden = self._table.personal
        texts = (f"{k}={'***' if k in hidden else v}" for k, v in row.items())
        return printable(", ".join(texts))
