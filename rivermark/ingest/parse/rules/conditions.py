"""Named conditions on rows that the driver holds: evaluated on columns, else by Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.projection import Projection
from rivermark.ingest.parse.rules.evaluation import Evaluator
from rivermark.ingest.parse.rules.expression import Expression, expressions_of, places_in
from rivermark.ingest.parse.rules.moments import ZoneOf
from rivermark.ingest.parse.rules.vector import Untranslatable


class Conditions:
    """Conditions over rows of one schema.

    Spark analyses them once. What its plan says is evaluated on whole columns where the functions
    are known to be exactly Spark's; rows in doubt are evaluated by Spark.
    """

    def __init__(
        self, spark: SparkSession, conditions: Sequence[tuple[str, Column]], zone_of: ZoneOf
    ) -> None:
        self._names = [name for name, _ in conditions]
        self._projection = Projection(spark, conditions)
        self._zone_of = zone_of
        self._evaluator: Evaluator | None = None
        self._is_planned = False

    def of(self, rows: pa.Table, wanted: Mask) -> dict[str, Mask]:
        """Where each condition is true, of the rows that are wanted."""
        holding = {name: np.zeros(rows.num_rows, np.bool_) for name in self._names}
        if not self._names or not wanted.any():
            return holding
        if not self._is_planned:
            self._evaluator = self._planned(rows.schema)
            self._is_planned = True
        rest = wanted
        if self._evaluator is not None:
            some = rows.select(self._projection.used(rows.schema))
            all_wanted = bool(wanted.all())
            outcomes = self._evaluator.evaluate(
                some if all_wanted else some.filter(pa.array(wanted))
            )
            for name, outcome in outcomes.items():
                holding[name][wanted] = outcome.holds
            rest = wanted.copy()
            rest[wanted] = np.logical_or.reduce([each.doubtful for each in outcomes.values()])
        if rest.any():
            evaluated = self._projection.of(rows.filter(pa.array(rest)))
            for name in self._names:
                said = pc.fill_null(evaluated[name], False).to_numpy()
                holding[name][rest] = said.astype(np.bool_)
        return holding

    def _planned(self, schema: pa.Schema) -> Evaluator | None:
        planned = self._projection.planned(schema)
        plan = planned.to_json()
        if plan is None:
            return None
        columns = expressions_of(plan, planned.constants)
        places = places_in([*columns.values()])

        def ask(parts: Sequence[Expression], rows: pa.Table) -> pa.Table | None:
            try:
                return self._projection.parts([places[part] for part in parts], rows)
            except (Py4JJavaError, PySparkException):
                return None

        used = [schema.field(name) for name in self._projection.used(schema)]
        try:
            return Evaluator(
                {name: columns[name] for name in self._names},
                pa.schema(used),
                lambda part: planned.type_of(places[part]),
                self._zone_of,
                ask,
            )
        except Untranslatable:
            return None
