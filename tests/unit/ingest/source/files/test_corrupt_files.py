"""Which errors of reading are a fault of the file, and which may pass."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.errors import PythonException

from rivermark.ingest.source.files.corrupt_files import blame
from rivermark.model.source import PlannedSplit

NOW = datetime(2026, 3, 2, tzinfo=UTC)
FILE = PlannedSplit(
    name="a.json",
    path="/landing/a.json",
    size=10,
    modified_at=NOW,
    format="json",
    batch=0,
    landed_at=NOW,
)
TRACEBACK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 3, in main
{last}
"""


@pytest.mark.parametrize(
    ("last", "blamed"),
    [
        ("ModuleNotFoundError: No module named 'rivermark'", False),
        ("ImportError: cannot import name 'json_objects'", False),
        ("OSError: [Errno 28] No space left on device", False),
        ("java.lang.ClassNotFoundException: com.hadoop.compression.lzo.LzoCodec", True),
        ("ValueError: not a Parquet file", True),
    ],
)
def test_a_fault_of_the_environment_is_no_fault_of_the_file(last: str, blamed: bool) -> None:
    damaged: dict[str, str] = {}
    blame(damaged, FILE, "file_unparsable", PythonException(TRACEBACK.format(last=last)))
    assert ("a.json" in damaged) is blamed


def test_m048_what_is_raised_in_a_worker_is_named_and_not_the_worker() -> None:
    damaged: dict[str, str] = {}
    last = "rivermark.quality.conditions.ConditionFailed: rule 'hot' cannot be computed of a row"
    blame(damaged, FILE, "file_unparsable", PythonException(TRACEBACK.format(last=last)))
    assert damaged == {
        "a.json": "file_unparsable: ConditionFailed: rule 'hot' cannot be computed of a row"
    }
