"""The worked example of the page on event time, landed as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing.landing import land

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "event-time.md"
ROW = re.compile(r"^\| (\d) \| (\w) \| (\d\d:\d\d) \| (none|\d\d:\d\d) \| (\w+) \|$", re.MULTILINE)


def test_the_rows_of_the_page_are_admitted_or_late_as_it_says(
    spark: SparkSession, settings: Settings
) -> None:
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) == 8
    page: dict[str, Any] = {}
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), page)  # noqa: S102 - our own page
    ingest = page["READINGS"]
    folder = Path(settings.landing_root) / ingest.source.name
    for file in sorted({row[0] for row in rows}):
        lines = [
            json.dumps({"id": name, "at": f"2026-03-01T{at}:00Z", "celsius": 20.5})
            for number, name, at, *_ in rows
            if number == file
        ]
        land(folder / f"{file}.json", lines)

    run_bounded(spark, settings, Topology([ingest]), [ingest], run_id="page")

    lake = settings.lake()
    admitted = spark.read.format("delta").load(lake.path(ingest.admitted)).collect()
    late = spark.read.format("delta").load(lake.path(ingest.late)).collect()
    outcomes = {row["id"]: "admitted" for row in admitted} | {row["id"]: "late" for row in late}
    assert outcomes == {name: outcome for _, name, _, _, outcome in rows}
    assert {row["id"]: f"{row['_watermark']:%H:%M}" for row in late} == {
        name: watermark for _, name, _, watermark, outcome in rows if outcome == "late"
    }
