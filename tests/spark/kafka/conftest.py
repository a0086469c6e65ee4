"""Tests of topics need Kafka's client: where that extra is not installed, they are skipped."""

from __future__ import annotations

import pytest


def pytest_pycollect_makemodule() -> None:
    pytest.importorskip("confluent_kafka", reason="needs the extra: pip install 'rivermark[kafka]'")
