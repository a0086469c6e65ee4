"""Tests of topics need Kafka's client: where that extra is not installed, they are skipped."""

from __future__ import annotations

import pytest

from rivermark.setup.ivy import Problem
from rivermark.setup.jars import fetch


def pytest_pycollect_makemodule() -> None:
    pytest.importorskip("confluent_kafka", reason="needs the extra: pip install 'rivermark[kafka]'")


@pytest.fixture(scope="session")
def connector() -> None:
    """Skips a test where Spark's connector for Kafka is missing and cannot be fetched."""
    try:
        fetch("spark-kafka")
    except Problem as problem:
        pytest.skip(f"needs Spark's connector for Kafka: {problem}")
