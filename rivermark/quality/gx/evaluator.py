"""Suites with a page of Data Docs: DuckDB evaluates them, Great Expectations what only it can."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rivermark.model.check import CheckResult
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.result import SuiteResult, not_evaluated, unanswered

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from pyspark.sql import DataFrame, SparkSession

    from rivermark.quality.duckdb_evaluator import Rows

    InGreatExpectations = dict[str, ExpectationValidationResult]

VIEW: Final = "tmp_view"
"""The temporary view, in the caller's session, by which Great Expectations reads a `{batch}`."""


@dataclass(frozen=True, kw_only=True)
class DocsEvaluator:
    """Evaluates suites on `rows`, those of `table` at `version`, and draws their pages.

    `frame` reads the same rows by Spark, for expectations that Great Expectations alone evaluates;
    the session is used as it is: nothing is configured, cached or left behind in it. Results and
    pages go to `docs_root`, the last `keep` of each suite; without `docs` nothing is stored. Values
    of personal columns are neither sampled nor quoted in errors. One suite runs at a time in a
    process; several processes may share `docs_root`.
    """

    rows: Rows
    table: Table
    version: int
    docs_root: Path
    frame: Callable[[], DataFrame]
    docs: bool = True
    keep: int = 20

    def evaluate(self, suite: Suite) -> SuiteResult:
        """Results of all rules of the suite; of one that cannot be evaluated, that it cannot."""
        started = time.monotonic()
        # Read when Great Expectations is imported. That takes seconds, so it happens only now.
        os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
        evaluator = DuckDbEvaluator(self.rows, self.table, self.version)
        counted = evaluator.evaluate(suite)
        rules = {rule.name: rule for rule in suite.rules}
        by_name = {
            each.name: replace(each, examples=evaluator.examples_of(rules[each.name], each))
            for each in counted.results
        }
        with main_module_with_a_file():
            from rivermark.quality.gx.data_docs import publish
            from rivermark.quality.gx.results import stored

            own = [rule for rule in suite.rules if isinstance(rule.question, OfGreatExpectations)]
            by_gx = self._by_gx(suite, own, by_name) if counted.rows and own else {}
            for rule in own:
                by_name.setdefault(rule.name, not_evaluated(rule, passed=suite.may_be_empty))
            result = SuiteResult(
                suite=suite.name,
                table=self.table.name,
                version=self.version,
                rows=counted.rows,
                results=tuple(by_name[rule.name] for rule in suite.rules),
                docs_path=None,
                elapsed=timedelta(seconds=time.monotonic() - started),
            )
            if not self.docs:
                return result
            drawn = stored(suite, result, self.rows.schema, by_gx)
            page = publish(self.docs_root, drawn, version=self.version, keep=self.keep)
        elapsed = timedelta(seconds=time.monotonic() - started)
        return replace(result, docs_path=page, elapsed=elapsed)

    def _by_gx(
        self, suite: Suite, rules: Sequence[SuiteRule], results: dict[str, CheckResult]
    ) -> InGreatExpectations:
        """The results of Great Expectations, added to those of DuckDB."""
        from rivermark.quality.gx.data_docs import opened
        from rivermark.quality.gx.own_expectations import evaluated

        frame, by_gx = self.frame(), dict[str, "ExpectationValidationResult"]()
        with ExitStack() as stack:
            stack.enter_context(_view_restored(frame.sparkSession))
            batch = stack.enter_context(opened(self.docs_root, frame, self.table.name))
            for rule in rules:
                try:
                    check, drawn = evaluated(batch, rule, personal=self.table.personal)
                except (SuiteDoesNotFit, CheckCrashed) as error:
                    results[rule.name] = unanswered(suite, rule, error)
                else:
                    results[rule.name], by_gx[rule.name] = check, drawn
        return by_gx


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
