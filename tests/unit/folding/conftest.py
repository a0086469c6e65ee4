"""A shop of three days whose door has set 2 % of the rows aside as late, without an engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deltalake import DeltaTable

from rivermark.folding.fold import FoldReport, fold_late
from rivermark.settings import Settings
from rivermark.stream import Ingest
from tests.oracles.shop import ORDERS, PAYMENTS, SHOP

Fold = Callable[..., FoldReport]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def no_engine() -> NoReturn:
    raise AssertionError("an engine was started")


@pytest.fixture
def fold(settings: Settings) -> Fold:
    def run(**given: Any) -> FoldReport:
        return fold_late(settings, SHOP, [ORDERS, PAYMENTS], no_engine, run_id="fold", **given)

    return run


def ids(settings: Settings, ingest: Ingest) -> list[int]:
    """The order ids of the admitted table, repeats among them."""
    table = DeltaTable(settings.lake().path(ingest.admitted)).to_pyarrow_table(columns=["order_id"])
    return sorted(table["order_id"].to_pylist())
