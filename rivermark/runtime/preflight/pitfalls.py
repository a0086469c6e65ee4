"""Legal Spark that is wrong in a build: one value that stops it, values of chance.

Spark's ANSI mode lets an expression raise for a value that it cannot take, and a batch that raises
is repeated with the same value each time. A build that gives other rows each time agrees with no
recompute, and not with itself after a kill. Both are seen in the analyzed plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    StringType,
    _parse_datatype_json_value,
)

from rivermark.runtime.preflight.plan_tree import Expression, Operator, Plan
from rivermark.runtime.query.columns import fits

IMPURE: Final = {
    "CurrentTimestamp": "current_timestamp()",
    "CurrentBatchTimestamp": "current_timestamp()",
    "Now": "now()",
    "CurrentDate": "current_date()",
    "CurDateExpressionBuilder": "curdate()",
    "CurrentTime": "current_time()",
    "LocalTimestamp": "localtimestamp()",
    "Rand": "rand()",
    "Randn": "randn()",
    "RandStr": "randstr()",
    "Uniform": "uniform()",
    "Uuid": "uuid()",
    "Shuffle": "shuffle()",
    "SparkPartitionID": "spark_partition_id()",
    "MonotonicallyIncreasingID": "monotonically_increasing_id()",
    "InputFileName": "input_file_name()",
    "InputFileBlockStart": "input_file_block_start()",
    "InputFileBlockLength": "input_file_block_length()",
    "Sample": "sample()",
}
"""Expressions and operators that give other values each time, as users write them."""
BY_ORDER: Final = {
    "GlobalLimit": "limit()",
    "LocalLimit": "limit()",
    "Limit": "limit()",
    "Offset": "offset()",
    "Tail": "tail()",
    "First": "first()",
    "Last": "last()",
    "AnyValue": "any_value()",
}
"""Those whose result depends on the order in which rows come."""
DIVISIONS: Final = ("Divide", "IntegralDivide", "Remainder", "Pmod")
PARSERS: Final = {
    "ParseToTimestamp": "to_timestamp",
    "ParseToTimestampLTZExpressionBuilder": "to_timestamp",
    "ParseToDate": "to_date",
    "ToNumber": "to_number",
    "ParseUrl": "parse_url",
    "ToBinary": "to_binary",
    "UnixTimestamp": "unix_timestamp",
    "ToUnixTimestamp": "unix_timestamp",
    "GetTimestamp": "to_timestamp",
}
"""Functions that raise for a text that they cannot read."""
TRIED: Final = {"unix_timestamp": "to_timestamp"}
"""What is written with `try_` before it, where the function itself has no such form."""
CHOICES: Final = ("CaseWhen", "If", "Coalesce", "NullIf")
"""What evaluates its parts by a condition: it may keep away the value that would raise."""
NON_ZERO: Final = (*CHOICES, "Count", "Greatest")
"""Divisors that were made not to be zero, or are so only where nothing is divided."""
PASSED: Final = (
    "Alias",
    "AggregateExpression",
    "Coalesce",
    "CheckOverflow",
    "Round",
    "KnownNotNull",
)
"""What a sum passes through on the way to its cast."""


def pitfalls(built: DataFrame) -> Iterator[str]:
    """Parts of a build that may stop its stream or change its rows, a sentence each."""
    plan = Plan(built)
    sentences = (*_changing(plan), *_sums(plan), *_raising(plan))
    yield from dict.fromkeys(sentences)


def _changing(plan: Plan) -> Iterator[str]:
    for operator in plan.top.walk():
        if operator.kind in (*IMPURE, *BY_ORDER):
            yield _said_of(operator.kind)
        if operator.kind == "Deduplicate" and not _is_whole(plan, operator):
            keys = ", ".join(str(each.fields.get("name")) for each in operator.expressions)
            yield (
                f"drop_duplicates({keys}) keeps whichever row comes first, and its key for "
                "good: a recompute may keep another row. Write operators.first_of_each"
            )
    in_order = {
        within.address
        for each in plan.expressions()
        if each.kind == "WindowExpression"
        for within in each.walk()
    }
    for each in plan.expressions():
        if each.kind in IMPURE or (each.kind in BY_ORDER and each.address not in in_order):
            yield _said_of(each.kind)
        elif each.fields.get("udfDeterministic") is False:
            yield _said_of(f"{each.fields['name']}()")


def _said_of(kind: str) -> str:
    if kind in BY_ORDER:
        return (
            f"{BY_ORDER[kind]} depends on the order in which rows come, so a recompute gives other "
            "rows: choose by a value, as max_by, min_by or max(struct(...)) do"
        )
    return (
        f"{IMPURE.get(kind, kind)} gives another value each time that a batch or day is computed, "
        "so a repeated batch or a recompute gives other rows: take the value from a column of the "
        "rows, such as their event time or `_ingested_at`"
    )


def _is_whole(plan: Plan, deduplicate: Operator) -> bool:
    """True if the keys are all columns, of which then it does not matter, or the event time."""
    keys = {each.number for each in deduplicate.expressions}
    watermarks = (o for o in deduplicate.walk() if o.kind == "EventTimeWatermark")
    if any(each.number in keys for o in watermarks for each in o.expressions):
        return True
    output = plan.output(deduplicate.below[0])
    return output is not None and {each.number for each in output} <= keys


def _sums(plan: Plan) -> Iterator[str]:
    for each in plan.expressions():
        summed = _summed(plan, each.parts[0]) if each.kind == "Cast" else None
        if summed is None:
            continue
        to, of = type_of(each.type), _type(plan, summed.parts[0])
        if isinstance(to, DecimalType) and isinstance(of, DecimalType):
            has_room = to.precision - to.scale > of.precision - of.scale
            wider = f"decimal({min(of.precision + 10, 38)},{of.scale})"
        elif isinstance(to, IntegralType) and isinstance(of, IntegralType):
            has_room, wider = not fits(to, of), "long"
        else:
            continue
        if not has_room:
            yield (
                f"a sum of {_shown(summed.parts[0])} ({of.simpleString()}) is cast to "
                f"{to.simpleString()}, which has no room for it: one large value would stop the "
                f'stream. Write .cast("{wider}"), and that type in the table'
            )


def _summed(plan: Plan, expression: Expression) -> Expression | None:
    """The sum that an expression is, where it is one."""
    expression = plan.behind(expression)
    if expression.kind == "Sum":
        return expression
    if expression.kind in PASSED and expression.parts:
        return _summed(plan, expression.parts[0])
    return None


def _raising(plan: Plan) -> Iterator[str]:
    for operator in plan.top.walk():
        for top in operator.expressions:
            for each in _unguarded(top):
                if each.kind == "Cast":
                    yield from _cast(plan, operator, each)
                elif each.kind in DIVISIONS and _may_divide_by_zero(plan, each):
                    yield (
                        f"{_shown(each.parts[0])} is divided by {_shown(each.parts[1])}, which "
                        "raises where that is 0: write try_divide (try_mod), or nullif(..., 0)"
                    )
                elif each.kind in ("ElementAt", "GetArrayItem") and _is_strict_array(plan, each):
                    yield (
                        f"an element of {_shown(each.parts[0])} that is not there raises: write "
                        "get(array, index) or try_element_at"
                    )
                elif each.kind in PARSERS and _reads_text(plan, each):
                    name = PARSERS[each.kind]
                    yield (
                        f"{name}({_shown(each.parts[0])}) raises for a text that it cannot read: "
                        f"write try_{TRIED.get(name, name)}"
                    )


def _unguarded(expression: Expression) -> Iterator[Expression]:
    """An expression and its parts, without those that a condition decides on."""
    yield expression
    if expression.kind not in CHOICES:
        for part in expression.parts:
            yield from _unguarded(part)


def _cast(plan: Plan, operator: Operator, cast: Expression) -> Iterator[str]:
    value = cast.parts[0]
    made, to = _type(plan, value), type_of(cast.type)
    if made is None or to is None or value.kind == "Literal" or not _is_strict(plan, cast):
        return
    wanted = to.simpleString()
    if isinstance(made, NumericType) and isinstance(to, NumericType):
        # Of what was computed the range is not known.
        is_read = value.kind == "AttributeReference" and value.number not in plan.aliases
        if is_read and not isinstance(to, FloatType | DoubleType) and not fits(made, to):
            yield (
                f"{_shown(value)} ({made.simpleString()}) is cast to {wanted}, which raises for a "
                f'number that it cannot hold: write try_cast("{wanted}"), or a wider type'
            )
        return
    if not isinstance(made, StringType) or isinstance(to, StringType | BinaryType):
        return
    if operator.kind == "Join" and isinstance(to, NumericType):
        yield (
            f"a join compares the text {_shown(value)} with a number ({wanted}): one text that is "
            "none would stop the stream, and '007' would be 7. Cast the number to string, or the "
            "text by try_cast"
        )
    else:
        yield (
            f"the text {_shown(value)} is cast to {wanted}, which raises for a text that is none: "
            f'write try_cast("{wanted}")'
        )


def _may_divide_by_zero(plan: Plan, division: Expression) -> bool:
    divisor = plan.behind(_without_casts(division.parts[1]))
    while divisor.kind in ("AggregateExpression", "Cast", "Alias") and divisor.parts:
        divisor = plan.behind(divisor.parts[0])
    if divisor.kind == "Multiply":
        is_fine = all(_is_non_zero(plan, part) for part in divisor.parts)
    else:
        is_fine = _is_non_zero(plan, divisor)
    return not is_fine and _is_strict(plan, division)


def _is_non_zero(plan: Plan, expression: Expression) -> bool:
    expression = plan.behind(_without_casts(expression))
    while expression.kind == "AggregateExpression":
        expression = expression.parts[0]
    if expression.kind == "Literal":
        return str(expression.fields.get("value")) not in ("0", "0.0", "0.00")
    return expression.kind in NON_ZERO


def _is_strict_array(plan: Plan, access: Expression) -> bool:
    kind = _type(plan, access.parts[0])
    return (kind is None or kind.typeName() == "array") and _is_strict(plan, access)


def _is_strict(plan: Plan, expression: Expression) -> bool:
    """Returns True if an expression raises for a value that it cannot take."""
    own = plan.of_jvm(expression)
    if own is None:
        return False
    for name in ("failOnError", "evalMode"):
        try:
            said = str(getattr(own, name)())
        except Exception:  # noqa: S112 - py4j has no way to ask whether it has the method
            continue
        return said in ("True", "true", "ANSI")
    return expression.kind in PARSERS


def _reads_text(plan: Plan, parser: Expression) -> bool:
    is_text = isinstance(_type(plan, parser.parts[0]), StringType)
    is_fixed = all(each.kind != "AttributeReference" for each in parser.walk())
    return is_text and not is_fixed and _is_strict(plan, parser)


def _without_casts(expression: Expression) -> Expression:
    while expression.kind == "Cast":
        expression = expression.parts[0]
    return expression


def _type(plan: Plan, expression: Expression) -> DataType | None:
    """The type of an expression, where the plan says it."""
    named = type_of(expression.type)
    if named is None and expression.parts and (value := plan.of_jvm(expression)) is not None:
        return type_of(value.dataType().json())
    return named


def type_of(kind: Any) -> DataType | None:
    """A type as the plan's JSON says it."""
    if kind is None:
        return None
    text = kind.strip('"') if isinstance(kind, str) and not kind.startswith("{") else kind
    try:
        return _parse_datatype_json_value(text)
    except Exception:
        return None


def _shown(expression: Expression) -> str:
    """An expression as a user knows it: by the column in it."""
    names = [str(e.fields["name"]) for e in expression.walk() if e.kind == "AttributeReference"]
    name = names[0] if names else expression.kind.lower()
    return f"'{name}'"
