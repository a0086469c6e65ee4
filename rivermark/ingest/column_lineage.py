"""Source columns of an ingest's tables, as its declaration says."""

from __future__ import annotations

from rivermark.model.contract import META
from rivermark.model.ingest import Ingest
from rivermark.model.reader import LandingTime
from rivermark.model.table import Table

Columns = list[tuple[str, str]]
"""Names of tables, each with the name of a column of it."""


def ingest_lineage(ingest: Ingest, table: Table) -> dict[str, Columns]:
    """The columns that each column of one of the ingest's tables comes from.

    Fields are read in the payload of the raw rows. A column is left out where the declaration does
    not say it: of raw rows, whose source is no table; what rules and watermarks decide.
    """
    if table.name == ingest.raw.name:
        return {}
    if table.name != ingest.versions.name and table.name == ingest.admitted.name:
        return {name: [(ingest.versions.name, name)] for name in table.schema.names}
    raw = ingest.raw.name
    place: dict[str, Columns] = {column.name: [(raw, column.name)] for column in META}
    fields: dict[str, Columns] = {
        field.name: [(raw, "_landed_at" if isinstance(field.read, LandingTime) else "payload")]
        for field in ingest.contract.fields
    }
    if table.name == ingest.quarantine.name:
        time = fields[ingest.contract.event_time]
        return {**place, "payload": [(raw, "payload")], "event_time": time}
    return fields | place
