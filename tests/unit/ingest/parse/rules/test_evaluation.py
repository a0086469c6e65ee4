"""Conditions on columns: three-valued logic, doubt, and parts that Spark is asked about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rivermark.ingest.parse.lane.zones import Change, Zone
from rivermark.ingest.parse.rules.evaluation import Evaluator
from rivermark.ingest.parse.rules.expression import Expression, Place, expressions_of, places_in
from rivermark.ingest.parse.rules.parts import FEW
from rivermark.ingest.parse.rules.texts import is_portable

CATALYST = "org.apache.spark.sql.catalyst.expressions."
Nodes = list[dict[str, Any]]


def node(function: str, /, *children: Nodes, **details: Any) -> Nodes:
    """A function and its arguments, as Spark writes a tree: each node before its children."""
    own = {"class": CATALYST + function, "num-children": len(children), **details}
    return [own, *(each for child in children for each in child)]


def col(name: str, kind: str = "integer") -> Nodes:
    return node("AttributeReference", name=name, dataType=kind, exprId={"id": 1})


def lit(value: object, kind: str = "integer") -> Nodes:
    return node("Literal", value=None if value is None else str(value), dataType=kind)


def plan(**conditions: Nodes) -> str:
    columns = [node("Alias", each, name=name) for name, each in conditions.items()]
    return json.dumps([{"class": "Project", "num-children": 1, "projectList": columns}])


def no_constants(_: Place) -> list[str | None]:
    return []


NEW_YORK = Zone(0, 2**31, -18000, [Change(1_710_054_000, -18000, -14400)])


class Spark:
    """Stands for Spark: says of each part that it is true, and remembers what it was asked."""

    def __init__(self, kind: str = "boolean", *, fails: bool = False) -> None:
        self.kind = kind
        self.asked: list[list[dict[str, Any]]] = []
        self.refused = 0
        self._fails = fails

    def evaluator(self, rows: pa.Table, **conditions: Nodes) -> Evaluator:
        def ask(parts: Sequence[Expression], sent: pa.Table) -> pa.Table | None:
            if self._fails or any(part.function == "Raises" for part in parts):
                self.refused += 1
                return None
            self.asked.append(sent.to_pylist())
            return pa.table({f"part_{n}": [True] * sent.num_rows for n in range(len(parts))})

        expressions = expressions_of(plan(**conditions), no_constants)
        return Evaluator(expressions, rows.schema, lambda _: self.kind, lambda _: NEW_YORK, ask)


def holds(condition: Nodes, **columns: pa.Array) -> list[bool | None]:
    """Where a condition is true; None where it is in doubt."""
    rows = pa.table(columns)
    it = Spark().evaluator(rows, it=condition).evaluate(rows)["it"]
    return [None if d else bool(h) for h, d in zip(it.holds, it.doubtful, strict=True)]


THREE = pa.array([True, False, None])
LEFT = pa.array([True, True, True, False, False, False, None, None, None])
RIGHT = pa.array([True, False, None] * 3)
A, B = col("a", "boolean"), col("b", "boolean")


def test_and_or_not_have_three_values() -> None:
    assert holds(node("And", A, B), a=LEFT, b=RIGHT) == [True] + [False] * 8
    assert holds(node("Not", node("And", A, B)), a=LEFT, b=RIGHT) == [
        *(False, True, False, True, True, True, False, True, False)
    ]
    assert holds(node("Or", A, B), a=LEFT, b=RIGHT) == [
        *(True, True, True, True, False, False, True, False, False)
    ]
    assert holds(node("Not", node("Or", A, B)), a=LEFT, b=RIGHT) == [
        *(False, False, False, False, True, False, False, False, False)
    ]


def test_a_doubt_counts_where_the_outcome_hangs_on_it() -> None:
    doubtful = node("GreaterThan", col("d", "double"), lit(0.0, "double"))
    nan = pa.array([float("nan")] * 3)
    assert holds(node("And", A, doubtful), a=THREE, d=nan) == [None, False, None]
    assert holds(node("Or", A, doubtful), a=THREE, d=nan) == [True, None, None]
    # From left to right: what raises in Spark raises before the right side is looked at.
    assert holds(node("And", doubtful, A), a=THREE, d=nan) == [None, None, None]
    case = node("If", A, doubtful, lit("false", "boolean"))
    assert holds(case, a=THREE, d=nan) == [None, False, False]


def test_what_overflows_or_divides_by_zero_is_in_doubt() -> None:
    i, j = pa.array([1, 2**31 - 1, -5], pa.int32()), pa.array([1, 1, None], pa.int32())
    total = node("GreaterThan", node("Add", col("i"), col("j")), lit(1))
    assert holds(total, i=i, j=j) == [True, None, False]
    n = pa.array([2, 2**62, 2**63 - 1])
    product = node("Multiply", col("n", "long"), col("n", "long"))
    assert holds(node("EqualTo", product, lit(4, "long")), n=n) == [True, None, None]
    d = pa.array([1.0, 0.0])
    quotient = node("Divide", lit(1.0, "double"), col("d", "double"))
    assert holds(node("EqualTo", quotient, lit(1.0, "double")), d=d) == [True, None]


def test_parts_that_differ_in_what_json_does_not_say_are_evaluated_each() -> None:
    first, second = (node("Like", col("n", "long"), escapeChar=None) for _ in range(2))
    like, again = (node("Lower", col("s", "string")) for _ in range(2))
    told = expressions_of(plan(first=first, second=second, like=like, again=again), no_constants)

    assert told["first"] is not told["second"]
    assert places_in([*told.values()])[told["second"]] == (1,)
    assert told["like"] is told["again"]
    assert told["first"].children == told["second"].children


def test_the_constants_of_a_set_are_asked_for_by_its_place() -> None:
    sets: dict[Place, list[str | None]] = {
        (0,): ["1", "2"],
        (1, 1): ["1", "2"],
        (2, 0): ["1", None],
    }
    one = node("InSet", col("i"), hset=None)
    conditions = plan(first=one, second=node("And", A, one), third=node("Not", one))
    told = expressions_of(conditions, lambda place: sets[place])
    assert told["second"].children[1] is told["first"]
    assert told["third"].children[0] is not told["first"]

    rows = pa.table({"i": pa.array([1, 3, None], pa.int32()), "a": [True, True, True]})
    evaluator = Evaluator(told, rows.schema, str, lambda _: NEW_YORK, lambda *_: None)
    held = {name: outcome.holds.tolist() for name, outcome in evaluator.evaluate(rows).items()}
    assert held == {
        "first": [True, False, False],
        "second": [True, False, False],
        "third": [False, False, False],
    }


def test_longs_are_not_compared_as_doubles() -> None:
    n = pa.array([2**53, 2**53 + 1, None])
    assert holds(node("EqualTo", col("n", "long"), lit(2**53 + 1, "long")), n=n) == [
        *(False, True, False)
    ]


def test_decimals_of_several_scales_and_sizes_are_compared_exactly() -> None:
    p = pa.array([Decimal("1.10"), Decimal("-0.01"), None], pa.decimal128(12, 2))
    r = pa.array([Decimal("1.1"), Decimal("-0.010000001"), Decimal(0)], pa.decimal128(38, 9))
    condition = node("LessThanOrEqual", col("p", "decimal(12,2)"), col("r", "decimal(38,9)"))
    assert holds(condition, p=p, r=r) == [True, False, False]
    wide = pa.array([Decimal(10) ** 28, Decimal(1), Decimal(2)], pa.decimal128(38, 9))
    assert holds(condition, p=p, r=wide) == [None, True, False]


def test_times_are_shifted_by_the_tables_of_their_zone() -> None:
    t = pa.array([1_710_053_999_000_000, 1_710_054_000_000_000, -1], pa.timestamp("us", "UTC"))
    clock = node("FromUTCTimestamp", col("t", "timestamp"), lit("America/New_York", "string"))
    hour = node("Cast", clock, dataType="long", timeZoneId="UTC")
    shown = node("EqualTo", hour, lit(1_710_054_000 - 14_400, "long"))
    assert holds(shown, t=t) == [False, True, None]


def test_null_safe_in_coalesce_least_and_case() -> None:
    i, j = pa.array([1, None, 3, None], pa.int32()), pa.array([1, None, None, 4], pa.int32())
    same = node("EqualNullSafe", col("i"), col("j"))
    assert holds(same, i=i, j=j) == [True, True, False, False]
    some = node("In", col("i"), lit(3), lit(None))
    assert holds(some, i=i) == [False, False, True, False]
    assert holds(node("Not", some), i=i) == [False] * 4
    first = node("EqualTo", node("Coalesce", col("i"), col("j")), lit(4))
    assert holds(first, i=i, j=j) == [False, False, False, True]
    least = node("EqualTo", node("Least", col("i"), col("j")), lit(3))
    assert holds(least, i=i, j=j) == [False, False, True, False]
    case = node("CaseWhen", node("IsNotNull", col("j")), col("j"), node("IsNull", col("i")), lit(9))
    assert holds(node("IsNull", case), i=i, j=j) == [False, False, True, False]


def of_file(name: str = "f") -> Nodes:
    """A condition on a text that only Spark can evaluate."""
    return node("Like", node("Reverse", col(name, "string")), lit("%x", "string"))


def test_spark_is_asked_once_for_each_different_value() -> None:
    rows = pa.table({"f": ["a", "b"] * 500 + [None], "i": pa.array(range(1001), pa.int32())})
    spark = Spark()
    above = node("GreaterThan", col("i"), lit(998))
    evaluator = spark.evaluator(rows, it=node("And", above, of_file()))
    it = evaluator.evaluate(rows)["it"]
    assert [{row["f"] for row in sent} for sent in spark.asked] == [{"a", "b", None}]
    assert [len(sent) for sent in spark.asked] == [3]
    assert np.flatnonzero(it.holds).tolist() == [999, 1000]
    assert not it.doubtful.any()


def test_rows_are_in_doubt_where_too_many_values_would_be_asked_or_spark_fails() -> None:
    count = FEW + 1
    many = pa.table({"f": [str(n) for n in range(count)], "i": pa.array(range(count), pa.int32())})
    condition = node("And", node("GreaterThan", col("i"), lit(2)), of_file())
    few = many.slice(0, 5)
    for spark, rows in ((Spark(), many), (Spark(fails=True), few)):
        it = spark.evaluator(rows, it=condition).evaluate(rows)["it"]
        assert not spark.asked
        assert it.doubtful.tolist() == [n > 2 for n in range(rows.num_rows)]
        assert not it.holds[:3].any()


def test_a_part_that_raises_is_left_in_doubt_and_does_not_keep_the_others_out() -> None:
    rows = pa.table({"f": ["a", "b"], "i": pa.array([1, 2], pa.int32())})
    spark = Spark()
    first = node("EqualTo", col("i"), lit(1))
    guarded = node("If", first, node("Raises", col("i")), lit("false", "boolean"))
    evaluator = spark.evaluator(rows, other=of_file(), it=guarded)
    for _ in range(2):
        outcomes = evaluator.evaluate(rows)
        assert outcomes["other"].holds.all()
        assert not outcomes["other"].doubtful.any()
        assert outcomes["it"].doubtful.tolist() == [True, False]
    # Once together with the other, and once alone.
    assert spark.refused == 2


def test_a_part_takes_all_that_depends_on_the_same_texts_with_it() -> None:
    rows = pa.table({"f": ["a", "b"]})
    spark = Spark("array<string>")
    with pytest.raises(Exception, match="array"):
        spark.evaluator(rows, it=node("Size", of_file()))
    spark = Spark()
    evaluator = spark.evaluator(rows, it=node("Not", node("IsNull", of_file())))
    assert evaluator.evaluate(rows)["it"].holds.tolist() == [True, True]


def test_equal_expressions_are_one() -> None:
    total = node("Add", col("i"), col("j"))
    expressions = expressions_of(
        plan(a=node("GreaterThan", total, lit(1)), b=node("LessThan", total, lit(1))),
        no_constants,
    )
    first, second = expressions["a"], expressions["b"]
    assert first.children == second.children
    assert places_in([first, second])[second] == (1,)
    assert places_in([first, second])[first.children[0]] in {(0, 0), (1, 0)}
    assert first.inputs == {"i", "j"}


@pytest.mark.parametrize(
    ("pattern", "portable"),
    [
        (r"^[0-9]{4}-[0-9]{2}[T ](?:a|b)?\z", True),
        (r"\.csv\z", True),
        ("[A-Za-z]+/[A-Za-z0-9_+/-]+", True),
        ("a.c", False),
        ("a$", False),
        ("(?i)a", False),
        (r"\d+", False),
        ("a*+", False),
        ("a++b", False),
        ("[a-z&&[b]]", False),
        ("[^a]", False),
        ("é", False),
        ("a{2000}", False),
        ("a{,2}", False),
        ("(a", False),
        ("a(?=b)", False),
        (r"\Qa\E", False),
    ],
)
def test_patterns_that_java_and_re2_take_alike(pattern: str, *, portable: bool) -> None:
    assert is_portable(pattern) == portable
