"""The numbers of a stream's events."""

import dagster as dg
import pytest

from jobs.metadata import of_numbers

pytestmark = pytest.mark.platform


def test_numbers_of_a_process_follow_those_of_every_stream() -> None:
    told = of_numbers({"metrics/open": 2.5, "rows_in": 3, "metrics/dropped": 7, "unknown": 1})

    assert list(told) == ["rows_in", "metrics/dropped", "metrics/open"]
    assert told["metrics/dropped"] == dg.MetadataValue.int(7)
    assert told["metrics/open"] == dg.MetadataValue.float(2.5)
