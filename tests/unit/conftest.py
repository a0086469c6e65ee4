"""What unit tests share: a home of each test's own, and rows put into its tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rivermark.model.table import Table
from rivermark.settings import Settings
from tests.oracles.shop import append

Put = Callable[..., None]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def put(settings: Settings) -> Put:
    """Append rows to a table of the lake, which is made where needed."""

    def into(table: Table, *rows: dict[str, Any]) -> None:
        append(settings, table, list(rows))

    return into
