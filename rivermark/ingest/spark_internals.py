"""All that ingest uses of Spark beyond its public API. Written for Spark 4.2.

On another version `PlannedProjection` is not usable and `CachedColumns` selects by the public API:
the same rows, by a Spark job a batch (docs/decisions/0005-small-batches-are-parsed-in-the-driver.md
has the figures). To move to a newer Spark, run tests/spark/ingest and name its version here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession

IS_KNOWN: Final = pyspark.__version__.startswith("4.2.")
"""Whether Spark is the version that this module is written for."""
ROWS: Final = 20_000
"""Rows that come back at once: what a message to Python holds comfortably."""
BYTES: Final = 64 << 20
MOST_LEAVES: Final = 2_000
"""Columns and literals of a projection that is written as JSON: 200 take a tenth of a second."""


def engine_is_alive(spark: SparkSession) -> bool:
    """Whether the session's JVM still answers."""
    try:
        spark._jvm.System.nanoTime()  # type: ignore[union-attr]
    except Exception:
        # The bridge raises errors of many types once its other end is gone.
        return False
    return True


class CachedColumns:
    """The columns of a `select` that is done again and again, handed to the JVM once.

    `DataFrame.select` sends its columns one by one, a call into the JVM each. With many queries in
    a process each call waits for Python's lock, and a batch of an ingest made 370 of them. The
    columns belong to the session that first used them.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = list(columns)
        self._sent: Any = None

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows with these columns alone."""
        if not IS_KNOWN:
            return rows.select(*self._columns)
        if self._sent is None:
            self._sent = rows._jcols(*self._columns)  # type: ignore[operator]
        return DataFrame(rows._jdf.select(self._sent), rows.sparkSession)


class PlannedProjection:
    """Projections over rows of one schema, planned once and computed without a Spark job.

    A DataFrame is analysed, optimised, planned and run as a job each time, whatever its size: for
    one row through the parser 100 ms of CPU, against 14 so. The optimizer's rule that computes a
    projection over rows in memory is called by itself, on what the optimizer made of the
    projections the first time, and the rows come back as Arrow. `usable` tells whether Spark can
    compute these projections so.
    """

    def __init__(
        self, spark: SparkSession, build: Callable[[DataFrame], DataFrame], like: DataFrame
    ) -> None:
        """Let Spark plan what `build` makes of rows such as those of `like`."""
        self.usable = False
        if not IS_KNOWN:
            return
        self._spark = spark
        self._zone = spark.conf.get("spark.sql.session.timeZone")
        session: Any = spark._jsparkSession
        jvm: Any = spark._jvm
        # Of an RDD, because the optimizer would compute them over rows in memory.
        self._schema = like._jdf.schema()
        none = session.createDataFrame(spark._sc._jsc.emptyRDD(), self._schema)
        execution: Any = build(DataFrame(none, spark))._jdf.queryExecution()
        self._steps: list[Any] = []
        self._leaf = execution.optimizedPlan()
        while self._leaf.nodeName() == "Project":
            self._steps.insert(0, self._leaf)
            self._leaf = self._leaf.children().head()
        catalyst = jvm.org.apache.spark.sql.catalyst
        # A plan that is made once would return the time at which it was made for every batch.
        current = catalyst.trees.TreePattern.CURRENT_LIKE()
        timeless = not execution.analyzed().containsPattern(current)
        self.usable = self._leaf.nodeName() == "LogicalRDD" and timeless
        self._rows_in_memory = catalyst.plans.logical.LocalRelation
        self._compute = getattr(catalyst.optimizer, "ConvertToLocalRelation$").__getattr__(
            "MODULE$"
        )
        arrow = jvm.org.apache.spark.sql.execution.arrow
        self._arrow = getattr(arrow, "ArrowConverters$").__getattr__("MODULE$")
        self._sequence = jvm.PythonUtils.toSeq
        self._nothing = jvm.scala.Option.empty()

    def of(self, rows: DataFrame) -> pa.Table | None:
        """The projections of rows in memory; None for other rows, and for another schema."""
        plan: Any = rows._jdf.queryExecution().logical()
        if plan.nodeName() != "LocalRelation" or not plan.schema().equals(self._schema):
            return None
        relation = self._rows_in_memory(self._leaf.output(), plan.data(), False, self._nothing)
        for step in self._steps:
            relation = self._compute.apply(step.withNewChildren(self._sequence([relation])))
        if relation.nodeName() != "LocalRelation":
            return None
        batches = self._arrow.toBatchWithSchemaIterator(
            relation.data().iterator(), relation.schema(), ROWS, BYTES, self._zone, True, False
        )
        tables = []
        while batches.hasNext():
            tables.append(pa.ipc.open_stream(batches.next()).read_all())
        return pa.concat_tables(tables) if tables else None

    @property
    def repeatable(self) -> bool:
        """Whether the same row has the same values next time; a projection and the zone UTC."""
        if not self.usable or len(self._steps) != 1 or self._zone != "UTC":
            return False
        return bool(self._steps[0].deterministic())

    def to_json(self) -> str | None:
        """The projection as Spark has optimised it; None where it is not repeatable, or too large.

        Spark looks up the fields of each part's class again, so a plan of many parts takes minutes.
        """
        if not self.repeatable:
            return None
        step = self._steps[0]
        columns = step.projectList()
        leaves = sum(columns.apply(n).collectLeaves().size() for n in range(columns.size()))
        return str(step.toJSON()) if leaves <= MOST_LEAVES else None

    def type_of(self, place: Sequence[int]) -> str:
        """The type of a part: of the n-th column, or of one of its children.

        As JSON writes it, but for texts whose comparison is not that of their bytes.
        """
        return str(self._part(place).dataType().typeName())

    def constants(self, place: Sequence[int]) -> list[str | None]:
        """The constants of an `InSet` at a place, as Spark writes them as texts; None for null."""
        values = self._part(place).hset()
        mark = f" {uuid4().hex} "
        has_null = bool(values.contains(None))
        texts: str = (values.excl(None) if has_null else values).mkString(mark)
        return [*texts.split(mark), *([None] if has_null else [])]

    def parts(self, places: Sequence[Sequence[int]]) -> PlannedProjection:
        """The same for parts of the columns."""
        expressions: Any = self._spark._jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
        names = getattr(expressions, "NamedExpression$").__getattr__("MODULE$")
        columns = [
            expressions.Alias(
                self._part(place), f"part_{n}", names.newExprId(), self._sequence([]),
                self._nothing, self._sequence([]),
            )
            for n, place in enumerate(places)
        ]  # fmt: skip
        own = copy(self)
        logical: Any = self._spark._jvm.org.apache.spark.sql.catalyst.plans.logical  # type: ignore[union-attr]
        own._steps = [logical.Project(self._sequence(columns), self._leaf)]
        return own

    def _part(self, place: Sequence[int]) -> Any:
        expression = self._steps[0].projectList().apply(place[0])
        if expression.nodeName() == "Alias":
            expression = expression.child()
        for n in place[1:]:
            expression = expression.children().apply(n)
        return expression


def columns_used(rows: DataFrame) -> set[str]:
    """The columns of what lies below that the outermost `select` of a DataFrame refers to."""
    plan: Any = rows._jdf.queryExecution().analyzed()
    used = plan.references().iterator()
    names = set()
    while used.hasNext():
        names.add(str(used.next().name()))
    return names


def zone_changes(
    spark: SparkSession, name: str, until: int
) -> tuple[int, list[tuple[int, int, int]]]:
    """A time zone as the JVM has it, by whose tables Spark reads times.

    Its offset (seconds east of UTC) at the beginning of 1970, and the changes from then on: when
    (seconds since 1970), and the offsets before and after.
    """
    jvm: Any = spark._jvm
    rules = jvm.java.time.ZoneId.of(name).getRules()
    epoch = jvm.java.time.Instant.EPOCH
    changes = []
    change = rules.nextTransition(epoch)
    while change is not None and (at := int(change.toEpochSecond())) < until:
        before, after = change.getOffsetBefore(), change.getOffsetAfter()
        changes.append((at, int(before.getTotalSeconds()), int(after.getTotalSeconds())))
        change = rules.nextTransition(change.getInstant())
    return int(rules.getOffset(epoch).getTotalSeconds()), changes
