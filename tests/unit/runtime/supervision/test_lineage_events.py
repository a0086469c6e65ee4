"""OpenLineage events as the specification has them, and targets that do not take them."""

from __future__ import annotations

import json
import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rivermark.model.errors import RivermarkError
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.lineage_events import (
    LineageEvents,
    backfill_events,
    batch_events,
)
from rivermark.runtime.supervision.lineage_record import FOLDER, LineageRecord
from rivermark.settings import Settings
from tests.oracles.shop import ORDERS, PAID
from tests.web_service import Reply, Request, serving

AT = datetime(2026, 3, 2, 12, tzinfo=UTC)


def batch(stream: str, **figures: Any) -> BatchMetrics:
    return BatchMetrics(
        stream=stream,
        generation=1,
        run_id="run",
        batch_id=7,
        started_at=AT,
        duration_ms=1500,
        **figures,
    )


def check_event(event: dict[str, Any]) -> None:
    """What the specification requires (2-0-2, OpenLineage.json); by its client, where there is one.

    The client is no dependency here, for it needs another HTTP library.
    """
    assert event["eventType"] in ("START", "COMPLETE")
    assert datetime.fromisoformat(event["eventTime"]).utcoffset() == timedelta(0)
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    assert event["job"]["namespace"]
    assert event["job"]["name"]
    assert event["schemaURL"].startswith("https://openlineage.io/spec/")
    assert ":" in event["producer"]
    facets = [*event["job"]["facets"].values(), *event["run"]["facets"].values()]
    for dataset in (*event["inputs"], *event["outputs"]):
        assert dataset["namespace"]
        assert dataset["name"]
        facets += dataset.get("facets", {}).values()
        facets += dataset.get("outputFacets", {}).values()
        for of_column in (
            dataset.get("facets", {}).get("columnLineage", {}).get("fields", {}).values()
        ):
            for field in of_column["inputFields"]:
                assert {*field} == {"namespace", "name", "field"}
    for facet in facets:
        assert facet["_producer"] == event["producer"]
        assert "/spec/facets/" in facet["_schemaURL"]
    check_by_client(event)


def check_by_client(event: dict[str, Any]) -> None:
    try:
        from openlineage.client import event_v2, facet_v2
    except ImportError:
        return
    statistics = facet_v2.output_statistics_output_dataset
    of = {
        "jobType": facet_v2.job_type_job.JobTypeJobFacet,
        "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
        "symlinks": facet_v2.symlinks_dataset.SymlinksDatasetFacet,
        "version": facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet,
        "columnLineage": facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet,
        "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet,
    }

    def made(facets: dict[str, Any]) -> dict[str, Any]:
        return {
            name: of[name](**{k: v for k, v in facet.items() if not k.startswith("_")})
            for name, facet in facets.items()
        }

    event_v2.RunEvent(
        eventType=event_v2.RunState[event["eventType"]],
        eventTime=event["eventTime"],
        run=event_v2.Run(**event["run"]),
        job=event_v2.Job(**event["job"] | {"facets": made(event["job"]["facets"])}),
        producer=event["producer"],
        inputs=[
            event_v2.InputDataset(**each | {"facets": made(each.get("facets", {}))})
            for each in event["inputs"]
        ],
        outputs=[
            event_v2.OutputDataset(
                **each
                | {
                    "facets": made(each["facets"]),
                    "outputFacets": made(each.get("outputFacets", {})),
                }
            )
            for each in event["outputs"]
        ],
    )


def test_a_batch_of_an_ingest_has_rows_of_each_table_and_columns_of_the_payload(
    settings: Settings,
) -> None:
    figures = batch(ORDERS.name, rows_in=10, admitted=7, late=2, quarantined=1)

    start, end = batch_events(settings.lake(), settings.state, ORDERS, figures)

    check_event(start)
    check_event(end)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"] == end["run"]
    assert end["eventTime"] == "2026-03-02T12:00:01.500000+00:00"
    assert end["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert end["inputs"] == [{"namespace": "file", "name": "/".join(ORDERS.source.asset)}]
    rows = {
        output["name"].rpartition("/tables/")[2]: output["outputFacets"]["outputStatistics"][
            "rowCount"
        ]
        for output in end["outputs"]
    }
    assert rows == {
        "shop/orders_raw": 10,
        "shop/orders": 7,
        "shop/orders_late": 2,
        "shop/orders_quarantine": 1,
    }
    admitted = next(o for o in end["outputs"] if o["name"].endswith("/shop/orders"))
    assert admitted["facets"]["columnLineage"]["fields"]["customer"] == {
        "inputFields": [
            {
                "namespace": "file",
                "name": settings.lake().path("shop/orders_raw"),
                "field": "payload",
            }
        ]
    }


def test_a_backfill_has_the_versions_that_it_read_and_made(settings: Settings) -> None:
    columns = {"order_id": [("shop/orders", "order_id")], "gone": [("shop/orders", "at")]}
    record = LineageRecord("code", columns)
    state_file.write(state_file.path_for(settings.state / FOLDER, PAID.name), record)

    _, end = backfill_events(
        settings.lake(),
        settings.state,
        PAID,
        "id",
        AT,
        2.0,
        {"shop/orders": 8},
        {"shop/paid": (5, 9)},
    )

    check_event(end)
    assert end["inputs"][0]["facets"]["version"]["datasetVersion"] == "8"
    (output,) = end["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == "5"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 9
    assert {*output["facets"]["columnLineage"]["fields"]} == {"order_id"}
    assert output["facets"]["symlinks"]["identifiers"][0]["name"] == "shop/paid"


def test_a_lake_elsewhere_is_named_by_its_store(settings: Settings) -> None:
    other = settings.model_copy(update={"lake_root": "s3://bucket/lake"})

    _, end = batch_events(other.lake(), other.state, PAID, batch(PAID.name, rows_out=3))

    assert (end["outputs"][0]["namespace"], end["outputs"][0]["name"]) == (
        "s3://bucket",
        "lake/tables/shop/paid",
    )


def test_a_batch_that_is_repeated_is_the_same_run(settings: Settings) -> None:
    runs = {
        event["run"]["runId"]
        for figures in (batch(PAID.name, rows_out=1), batch(PAID.name, rows_out=2))
        for event in batch_events(settings.lake(), settings.state, PAID, figures)
    }

    assert len(runs) == 1


def test_a_file_has_a_line_an_event_and_nothing_is_made_without_an_address(
    settings: Settings,
) -> None:
    path = settings.home / "of lineage" / "events.jsonl"
    for to in ("", path.as_uri()):
        events = LineageEvents(settings.model_copy(update={"lineage_to": to}))
        events.batch(PAID, batch(PAID.name, rows_out=3))
        events.close()

    kinds = [json.loads(line)["eventType"] for line in path.read_text().splitlines()]
    assert kinds == ["START", "COMPLETE"]


def test_a_server_gets_the_events_and_one_that_fails_is_told_of_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    works = True

    def answer(_: Request) -> Reply:
        return (201 if works else 503), {}

    with serving(answer) as service, caplog.at_level(logging.WARNING, "rivermark"):
        to = f"{service.url}/api/v1/lineage"
        events = LineageEvents(settings.model_copy(update={"lineage_to": to}))
        events.batch(PAID, batch(PAID.name, rows_out=3))
        events.close()
        assert [r.path for r in service.requests] == ["/api/v1/lineage"] * 2
        assert service.requests[0].headers["Authorization"] == "Bearer secret"
        check_event(json.loads(service.requests[1].body))
        assert caplog.messages == []

        works = False
        events = LineageEvents(settings.model_copy(update={"lineage_to": to}))
        for _ in range(3):
            events.batch(PAID, batch(PAID.name, rows_out=3))
        events.close()

    assert caplog.messages[0] == (
        f"lineage: 1 runs could not be delivered to {service.url} (the server answered 503); "
        "batches go on without"
    )
    assert caplog.messages[1:] == [f"3 runs are not in {service.url}"]


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(RivermarkError, match="is neither a file nor a server"):
        Settings(lineage_to="lineage.jsonl")
