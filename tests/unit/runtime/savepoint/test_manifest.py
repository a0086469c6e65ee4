"""Manifests: what a stream is at its last finished batch, whatever came behind it."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table
from rivermark.runtime.checkpoint import records
from rivermark.runtime.savepoint.manifest import Manifest, entry_sum, manifest_of
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, NOON, ORDERS
from tests.unit.runtime.checkpoints import read


def put(settings: Settings, table: Table, row: dict[str, Any], **metadata: Any) -> None:
    create_table(settings.lake(), table)
    path = settings.lake().path(table)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(
        path,
        pa.Table.from_pylist([row], schema),
        mode="append",
        commit_properties=commit_properties(metadata),
    )


def ran(settings: Settings) -> None:
    """The stream has finished batch 4, and committed batch 5 without finishing it."""
    put(settings, ORDERS.admitted, {"order_id": 1, "at": NOON})
    row = {"window_end": NOON, "orders": 1}
    for batch in (3, 4, 5):
        put(settings, HOURLY.tables[0], row, stream=HOURLY.name, generation=0, batch=batch)
    read(settings.lake(), HOURLY, 3, 1)
    read(settings.lake(), HOURLY, 4, 2)
    read(settings.lake(), HOURLY, 5, 2, done=False)


def test_a_manifest_names_the_versions_of_the_last_finished_batch(settings: Settings) -> None:
    ran(settings)

    made = manifest_of(settings, HOURLY, HOURLY.tables, "a")

    (written,) = made.tables.values()
    (place,) = made.inputs.values()
    assert (made.batch, written.version, written.files) == (4, 2, 2)
    assert (place.version, place.log_from, place.snapshot) == (2, 1, False)
    assert place.entry == entry_sum(settings.lake(), ORDERS.admitted, 1)


def test_a_manifest_is_read_back_as_it_was_written(settings: Settings) -> None:
    ran(settings)
    made = manifest_of(settings, HOURLY, HOURLY.tables, "a")
    path = f"{settings.lake().root}/manifest.json"

    records.write(path, made)

    assert records.read(path, Manifest, HOURLY.name) == made
    assert made.origin.since == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_stream_without_a_finished_batch_has_none(settings: Settings) -> None:
    read(_with_orders(settings).lake(), HOURLY, 0, 1, done=False)

    with pytest.raises(RivermarkError, match="has finished no batch"):
        manifest_of(settings, HOURLY, HOURLY.tables)


def _with_orders(settings: Settings) -> Settings:
    create_table(settings.lake(), ORDERS.admitted)
    return settings
