"""One Spark session for every test of this storey."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rivermark.runtime.session import open_session
from rivermark.settings import Settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("home")
    session = open_session(Settings(home=home, driver_memory="1g"), kind="short")
    yield session
    session.stop()
