"""A shop of three days with 2 % of its rows late, without Spark."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deltalake import DeltaTable

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.run import MergeReport, merge_late
from rivermark.model.stream import Ingest
from rivermark.settings import Settings
from tests.oracles.shop import ORDERS, PAYMENTS, SHOP, Landed, sent, write

Merge = Callable[..., MergeReport]


@pytest.fixture(scope="session")
def three_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Landed]:
    """A home with three days of payments, written once, to be copied."""
    home = tmp_path_factory.mktemp("three_days")
    return home, write(Settings(home=home), PAYMENTS, sent(3))


@pytest.fixture
def payments(settings: Settings, three_days: tuple[Path, Landed]) -> Landed:
    """Three days of payments, and what admission made of them."""
    home, landed = three_days
    shutil.copytree(home, settings.home, dirs_exist_ok=True)
    return landed


def no_engine() -> NoReturn:
    raise AssertionError("Spark was started")


@pytest.fixture
def merge(settings: Settings) -> Merge:
    def run(**given: Any) -> MergeReport:
        context = BackfillContext(settings=settings, topology=SHOP, spark=no_engine, run_id="night")
        return merge_late(context, [ORDERS, PAYMENTS], **given)

    return run


def ids(settings: Settings, ingest: Ingest) -> list[int]:
    """The order ids of the admitted table, repeats among them."""
    table = DeltaTable(settings.lake().path(ingest.admitted)).to_pyarrow_table(columns=["order_id"])
    return sorted(table["order_id"].to_pylist())
