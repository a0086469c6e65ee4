"""One Spark session for every test here, a fresh home each, and a folder to land files in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from setup.kafka_broker import Broker, free_port
from tests.spark.helpers.kafka import Topics
from tests.spark.helpers.landing import Landing

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a folder with one worker: they share what its fixtures have computed."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group(str(item.path.parent.relative_to(HERE))))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("home")
    # For minutes on one engine all its compilers pay: 330 s of CPU instead of 440.
    session = open_session(Settings(home=home), kind="long")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """A broker of these tests alone; it starts with the first test that needs it."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), free_port(), dies_with_parent=True)
    broker.start()
    yield Topics(broker.address)
    broker.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", trigger_seconds=0.1)


@pytest.fixture
def landing(settings: Settings) -> Landing:
    return Landing(Path(settings.landing_root))
