"""The half-hour counts of the Numenta Anomaly Benchmark, through the night of the clock change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.spark.assets.taxi.trips.published import Published

pytestmark = pytest.mark.long


def test_the_doubled_hour_is_flagged_and_nothing_is_lost(others: Published) -> None:
    found = {
        r["bucket_start"]: (r["passengers"], r["flags"])
        for r in others.rows("taxi/passenger_counts")
    }

    assert found == {
        datetime(2014, 11, 2, 4, 30, tzinfo=UTC): (23109, []),
        datetime(2014, 11, 2, 5, 0, tzinfo=UTC): (39197, ["two_hours_in_one"]),
        datetime(2014, 11, 2, 5, 30, tzinfo=UTC): (35212, ["two_hours_in_one"]),
        datetime(2014, 11, 2, 7, 0, tzinfo=UTC): (13259, []),
    }
    (noted,) = others.rows("ops/ingest_files", stream="taxi/passenger_counts")
    assert (noted["rows"], noted["admitted"], noted["quarantined"]) == (5, 4, 1)
