"""A run and a backfill leave OpenLineage events: what was read and written, by columns too."""

from __future__ import annotations

import json
from datetime import date

from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.runtime.supervision.lineage_record import record_lineage
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, windows
from tests.unit.runtime.supervision.test_lineage_events import check_event

HOURS = windows(READINGS, minutes=60)


def test_batches_and_backfills_tell_what_they_read_and_wrote(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    path = settings.home / "lineage" / "events.jsonl"
    settings = settings.model_copy(update={"lineage_to": path.as_uri()})
    landing.put(f"{FOLDER}/1.json", *[reading(n, note=f"{n}") for n in range(10)])
    landing.put(f"{FOLDER}/2.json", reading(2 * 24 * 60, note="closes"))
    run_bounded(spark, settings, Topology([READINGS, HOURS]), [READINGS, HOURS], run_id="run")
    # As the host of a bounded run does after it.
    record_lineage(spark, settings.state, [HOURS])
    of_run = len(path.read_text().splitlines())
    recompute_days(spark, settings, HOURS, date(2024, 3, 1))

    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        check_event(event)
    written = [event for event in events[:of_run] if event["eventType"] == "COMPLETE"]
    assert {event["job"]["name"] for event in written} == {READINGS.name, HOURS.name}
    (admitted,) = [
        output
        for output in written[0]["outputs"]
        if output["name"] == settings.lake().path(READINGS.admitted)
    ]
    assert admitted["outputFacets"]["outputStatistics"]["rowCount"] == 11
    assert "at" in admitted["facets"]["columnLineage"]["fields"]

    start, end = events[of_run:]
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert end["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    (read,) = end["inputs"]
    assert read["name"] == settings.lake().path(READINGS.admitted)
    assert read["facets"]["version"]["datasetVersion"].isdecimal()
    (hours,) = end["outputs"]
    sources = hours["facets"]["columnLineage"]["fields"]["window_start"]["inputFields"]
    assert [(s["name"], s["field"]) for s in sources] == [(read["name"], "at")]
