"""What the declaration of an ingest says of where the columns of its tables come from."""

from __future__ import annotations

from dataclasses import replace

from rivermark import Contract, Field
from rivermark.runtime.supervision.lineage_record import ingest_lineage
from tests.oracles.shop import ORDERS

RAW = ORDERS.raw.name
PAYLOAD = [(RAW, "payload")]
PLACE = {name: [(RAW, name)] for name in ("_file", "_row", "_ingest_batch", "_ingested_at")}


def test_fields_are_read_in_the_payload_and_places_are_kept() -> None:
    fields = {field.name: PAYLOAD for field in ORDERS.contract.fields}

    assert ingest_lineage(ORDERS, ORDERS.admitted) == fields | PLACE
    assert ingest_lineage(ORDERS, ORDERS.late) == fields | PLACE
    of_quarantine = {"payload": PAYLOAD, "event_time": PAYLOAD, **PLACE}
    assert ingest_lineage(ORDERS, ORDERS.quarantine) == of_quarantine
    assert ingest_lineage(ORDERS, ORDERS.raw) == {}


def test_each_column_that_is_named_is_one_of_its_table() -> None:
    for table in ORDERS.tables:
        lineage = ingest_lineage(ORDERS, table)
        assert set(lineage) <= set(table.schema.names)
        for sources in lineage.values():
            assert all(column in ORDERS.raw.schema.names for _, column in sources)


def test_a_lookup_is_made_of_its_versions_and_landing_is_no_field_of_a_record() -> None:
    contract = Contract(fields=(Field("store", "long", required=True),))
    stores = replace(
        ORDERS,
        kind="lookup",
        contract=contract,
        keys=("store",),
        lateness=None,
        days=None,
        personal=(),
    )

    versions = stores.versions.name
    admitted = ingest_lineage(stores, stores.admitted)
    assert admitted == {name: [(versions, name)] for name in stores.admitted.schema.names}
    of_versions = ingest_lineage(stores, stores.versions)
    assert of_versions["store"] == PAYLOAD
    assert of_versions["landed_at"] == [(RAW, "_landed_at")]
