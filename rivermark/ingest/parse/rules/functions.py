"""What each function of Catalyst does to vectors, where that is known to be exactly Spark's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rivermark.ingest.parse.rules import logic, moments, numbers, texts
from rivermark.ingest.parse.rules.expression import Expression
from rivermark.ingest.parse.rules.vector import Untranslatable, Vector, type_of


def apply(expression: Expression, arguments: Sequence[Vector], zone_of: moments.ZoneOf) -> Vector:
    """The values of an expression by those of its arguments.

    Raises:
        Untranslatable: its meaning is not known here, for these types at least.
    """
    details = expression.details
    match expression.function, arguments:
        case ("EqualTo" | "LessThan" | "LessThanOrEqual" | "GreaterThan" | "GreaterThanOrEqual"
              as name, [left, right]):  # fmt: skip
            return logic.compare(name, left, right)
        case "And", [left, right]:
            return logic.conjunction(left, right)
        case "Or", [left, right]:
            return logic.disjunction(left, right)
        case "Not", [value]:
            return logic.negation(value)
        case "IsNull", [value]:
            return logic.is_null(value)
        case "IsNotNull", [value]:
            return logic.negation(logic.is_null(value))
        case "EqualNullSafe", [left, right]:
            return logic.null_safe_equal(left, right)
        case "In", [value, *candidates] if candidates:
            return logic.is_in(value, candidates)
        case "InSet", [value]:
            return logic.is_in_set(value, details["constants"])
        case "If", [condition, yes, no]:
            return logic.first_true([(condition, yes)], no)
        case "CaseWhen", _:
            pairs = [*zip(arguments[::2], arguments[1::2], strict=False)]
            return logic.first_true(pairs, arguments[-1] if len(arguments) % 2 else None)
        case "Coalesce", _:
            return logic.coalesce(arguments)
        case (("Least" | "Greatest" as name), _):
            return numbers.extreme(name, arguments)
        case (("Add" | "Subtract" | "Multiply" as name), [left, right]):
            return numbers.arithmetic(name, left, right)
        case "Divide", [left, right]:
            return numbers.divided(left, right)
        case (("Abs" | "UnaryMinus" as name), [value]):
            return numbers.signed(name, value)
        case "Cast", [value]:
            return _cast(value, details)
        case "Length", [value]:
            return texts.length(value)
        case "StringTrim", [value]:
            return texts.trimmed(value)
        case (("Lower" | "Upper" as name), [value]):
            return texts.in_case(name, value)
        case (("Contains" | "StartsWith" | "EndsWith" | "RLike" as name), [value, pattern]):
            return texts.matches(name, value, pattern)
        case "UnixTimestamp", [value, _] if details.get("timeZoneId") == "UTC":
            return moments.unix_seconds(value)
        case (("FromUTCTimestamp" | "ToUTCTimestamp" as name), [value, zone]):
            return moments.shifted(name, value, zone_of(_constant(zone)))
        case "TimestampAddInterval", [value, interval] if details.get("timeZoneId") == "UTC":
            return moments.later(value, interval)
        case (("DateAdd" | "DateSub" as name), [day, days]):
            return moments.day_moved(name, day, days)
    raise Untranslatable(expression.function)


def _cast(value: Vector, details: Mapping[str, Any]) -> Vector:
    to, zone = type_of(details["dataType"]), details.get("timeZoneId")
    if value.type.kind == "text" and to == moments.TIMESTAMP and zone == "UTC":
        return texts.as_timestamp(value)
    return numbers.cast(value, to, zone)


def _constant(value: Vector) -> str:
    if value.type != texts.TEXT or len(value.values) != 1 or value.valid is not None:
        raise Untranslatable("a zone that is no constant")
    name: str = value.values[0].as_py()
    if not moments.ZONE_NAME.fullmatch(name):
        raise Untranslatable(f"zone {name}")
    return name
