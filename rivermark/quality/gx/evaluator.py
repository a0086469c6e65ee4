"""Suites evaluated by Great Expectations on Spark, with results as its pages draw them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rivermark.model.suite import Suite
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.result import SuiteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW: Final = "tmp_view"
"""The temporary view, in the caller's session, by which Great Expectations reads a `{batch}`."""


@dataclass(frozen=True, kw_only=True)
class SparkEvaluator:
    """Evaluates suites on the rows of `frame`, which was read at `version` of `table`.

    The session is used as it is: nothing is configured, cached or left behind in it. Results and
    pages go to `docs_root`, the last `keep` of each suite; without `docs` nothing is stored. Values
    of `personal` columns are neither sampled nor quoted in errors. One suite runs at a time in a
    process; several processes may share `docs_root`.
    """

    frame: DataFrame
    table: str
    version: int
    docs_root: Path
    personal: Sequence[str] = ()
    docs: bool = True
    keep: int = 20

    def evaluate(self, suite: Suite) -> SuiteResult:
        """Results of all rules of the suite; of one that cannot be evaluated, that it cannot.

        Raises:
            CheckCrashed: Not even the rows could be counted.
            SuiteDoesNotFit: The rows are those of a stream.
        """
        if self.frame.isStreaming:
            raise SuiteDoesNotFit(
                "it runs on a version of a table, not on a stream", suite=suite.name
            )
        started = time.monotonic()
        # Read when Great Expectations is imported. That takes seconds, so it happens only now.
        os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
        # One at a time: the data context, its Spark session and the view are the whole process's.
        with main_module_with_a_file(), _view_restored(self.frame.sparkSession):
            from rivermark.quality.gx.data_docs import opened, publish
            from rivermark.quality.gx.validation import validate

            with opened(self.docs_root, self.frame, self.table) as batch:
                validation = validate(self.frame, batch, suite, personal=self.personal)
                page = None
                if self.docs:
                    page = publish(
                        self.docs_root, validation.stored, version=self.version, keep=self.keep
                    )
        return SuiteResult(
            suite=suite.name,
            table=self.table,
            version=self.version,
            rows=validation.rows,
            results=validation.results,
            docs_path=page,
            elapsed=timedelta(seconds=time.monotonic() - started),
        )


@contextmanager
def _view_restored(session: SparkSession) -> Iterator[None]:
    """Leave the caller's temporary views as they were, also one that has the name of ours."""
    exists = session.catalog.tableExists(VIEW) and session.catalog.getTable(VIEW).isTemporary
    view = session.table(VIEW) if exists else None
    try:
        yield
    finally:
        if view is None:
            session.catalog.dropTempView(VIEW)
        else:
            view.createOrReplaceTempView(VIEW)
