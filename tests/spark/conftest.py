"""One Spark session for every test here, a fresh home each, and a folder to land files in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from rivermark.setup.ivy import Problem
from rivermark.setup.jars import fetch
from setup.kafka_broker import Broker
from setup.local_server import free_port
from tests.spark.helpers.landing import Landing

if TYPE_CHECKING:
    from tests.spark.helpers.kafka import Topics


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]
    """Keeps the tests of a folder with one worker: they share what its fixtures have computed."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].rpartition("/")[0]


# Not `--dist loadgroup`: xdist 3.8 gives a test its group by a name that pytest 9 does not read, so
# that each worker computed every fixture, and nothing said so.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("home")
    # For minutes on one engine all its compilers pay: 330 s of CPU instead of 440.
    session = open_session(Settings(home=home), kind="long")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker_jars() -> None:
    """Skips a test where a broker's JARs are missing and cannot be fetched."""
    try:
        fetch("kafka")
    except Problem as problem:
        pytest.skip(f"needs a Kafka broker: {problem}")


@pytest.fixture(scope="session")
def topics(broker_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """A broker of these tests alone; it starts with the first test that needs it."""
    # Loads Kafka's client, which no other tests need.
    from tests.spark.helpers.kafka import Topics

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
