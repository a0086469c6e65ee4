"""One Spark session for every test here, a fresh home each, and a folder to land files in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("home")
    # For minutes on one engine all its compilers pay: 330 s of CPU instead of 440.
    session = open_session(Settings(home=home), kind="long")
    yield session
    session.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", trigger_seconds=0.1)


@pytest.fixture
def landing(settings: Settings) -> Landing:
    return Landing(Path(settings.landing_root))
