"""What importing process functions brings in."""

import subprocess
import sys

import pytest

import rivermark

LOADED = (
    "import sys, rivermark.process; print(*(m for m in ('pyspark', 'py4j') if m in sys.modules))"
)


def test_process_functions_are_imported_without_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == []


def test_every_exported_name_is_there() -> None:
    assert [name for name in rivermark.__all__ if getattr(rivermark, name) is None] == []


def test_an_unknown_name_is_missed_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="'rivermark' has no attribute 'Nothing'"):
        _ = rivermark.Nothing
