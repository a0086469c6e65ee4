"""Running a suite on one version of a table, in the caller's session and without a trace there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rivermark.model.suite import Suite
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.result import SuiteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW: Final = "tmp_view"
"""The temporary view, in the caller's session, by which Great Expectations reads a `{batch}`."""

# The data context, its engine and the view are shared by the whole process.
_ONE_AT_A_TIME = threading.Lock()


def run_suite(
    df: DataFrame,
    suite: Suite,
    *,
    table: str,
    version: int,
    docs_root: Path | str,
    personal: Sequence[str] = (),
    docs: bool = True,
    keep: int = 20,
) -> SuiteResult:
    """Ask every rule of the suite about the rows of `df`, which was read at `version` of `table`.

    The session is used as it is: nothing is configured, cached or left behind in it. Results and
    pages go to `docs_root`, the last `keep` of each suite; without `docs` nothing is stored. Values
    of `personal` columns are neither sampled nor quoted in errors. One suite runs at a time in a
    process; several processes may share `docs_root`.

    Raises:
        CheckCrashed: A rule could not be evaluated; the data are not to blame.
        SuiteDoesNotFit: The suite asks for a column or a comparison that the table does not offer.
    """
    if df.isStreaming:
        raise SuiteDoesNotFit(f"suite '{suite.name}' runs on a version of a table, not on a stream")
    started = time.monotonic()
    # Read when Great Expectations is imported. That takes seconds, so it happens here, once.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    from rivermark.quality.gx.data_docs import opened, publish
    from rivermark.quality.gx.evaluator import judge

    root = Path(docs_root)
    with _ONE_AT_A_TIME, _view_put_back(df.sparkSession), opened(root, df, table) as batch:
        judgement = judge(df, batch, suite, personal=personal)
        page = publish(root, judgement.stored, version=version, keep=keep) if docs else None
    return SuiteResult(
        suite=suite.name,
        table=table,
        version=version,
        rows=judgement.rows,
        results=judgement.results,
        docs_path=page,
        elapsed=timedelta(seconds=time.monotonic() - started),
    )


@contextmanager
def _view_put_back(session: SparkSession) -> Iterator[None]:
    """Leave the caller's temporary views as they were, also one that has the name of ours."""
    taken = session.catalog.tableExists(VIEW) and session.catalog.getTable(VIEW).isTemporary
    view = session.table(VIEW) if taken else None
    try:
        yield
    finally:
        if view is None:
            session.catalog.dropTempView(VIEW)
        else:
            view.createOrReplaceTempView(VIEW)
