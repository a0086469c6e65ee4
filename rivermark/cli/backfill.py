"""Parts shared by the commands that recompute days: Spark on demand, and progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from rivermark.backfill.context import BackfillContext
from rivermark.cli.console import err, plain
from rivermark.cli.session import engine, new_run_id
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.runtime.spark.jvm import Kind


@contextmanager
def backfill(settings: Settings, topology: Topology, what: str) -> Iterator[BackfillContext]:
    """A context whose steps go to where progress goes, with the seconds since the start."""
    started, console = time.monotonic(), err()
    with ExitStack() as stack, console.status(what) as status:
        kind: Kind = "short"

        def expect(size: int) -> None:
            from rivermark.runtime.query.backlog import kind_of_backfill

            nonlocal kind
            kind = kind_of_backfill(size)

        @cache
        def spark() -> SparkSession:
            return stack.enter_context(engine(settings, kind))

        def step(text: str) -> None:
            status.update(plain(text))
            console.print(plain(f"{time.monotonic() - started:6.1f} s  {text}"), soft_wrap=True)

        yield BackfillContext(
            settings=settings,
            topology=topology,
            spark=spark,
            run_id=new_run_id(),
            on_step=step,
            expect=expect,
        )


def money(amount: Decimal | None) -> str:
    """An amount with thousands marks and two places; nothing for None."""
    return "" if amount is None else f"{amount:,.2f}"
