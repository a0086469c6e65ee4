"""Random conditions and patterns of the dialect, over the table of edges."""

from __future__ import annotations

import random
from typing import Final

from tests.unit.quality.edges import TEXTS

NUMBERS: Final = (
    "long", "int", "tiny", "money", "fine", "finest", "single", "double", "`end`", "limit",
    "window", "`Größe`", "place.lat", "size(items)", "length(text)", "0", "1", "-1", "2.5", "0.1",
    "9007199254740993", "16777217", "1e3",
)  # fmt: skip
OPERATORS: Final = ("=", "<>", "<", "<=", ">", ">=")
PARTS: Final = (
    "a", "b", ".", r"\s", r"\S", r"\d", r"\w", r"\W", "[a-z]", "[^a]", "[k\u00e4]", "(?:ab|a)",
    "(a|)", r"\u0085", r"\x{1F600}", "[^\\s]", "^", "$", "CARD", r"\r", r"\n", "\u00e9", r"\\", "%",
)  # fmt: skip


def random_pattern(chance: random.Random) -> str:
    flags = chance.choice(("", "", "", "(?i)", "(?s)", "(?is)"))
    parts = []
    for _ in range(chance.randint(0, 4)):
        part = chance.choice(PARTS)
        counts = ("", "", "*", "+", "?", "{0,2}", "{2}", "*?") if part not in "^$" else ("",)
        parts.append(part + chance.choice(counts))
    return flags + chance.choice(("", "", "|")).join(parts)


def random_condition(chance: random.Random, depth: int = 2) -> str:
    if depth and chance.random() < 0.5:
        a, b = (random_condition(chance, depth - 1) for _ in "ab")
        return chance.choice(
            (
                f"({a}) AND ({b})",
                f"({a}) OR NOT ({b})",
                f"CASE WHEN {a} THEN {b} ELSE truth END",
                f"coalesce({a}, {b})",
                f"({a}) = ({b})",
                f"({a}) IS NOT DISTINCT FROM ({b})",
                f"({a}) IS TRUE",
            )
        )
    return chance.choice((_of_numbers, _of_numbers, _of_texts, _of_times))(chance)


def _of_numbers(chance: random.Random) -> str:
    a, b, c = (_number(chance, 1) for _ in "abc")
    return chance.choice(
        (
            f"{a} {chance.choice(OPERATORS)} {b}",
            f"{a} BETWEEN {b} AND {c}",
            f"{a} NOT IN ({b}, {c})",
            f"{a} IS NULL",
            f"{a} IS DISTINCT FROM {b}",
        )
    )


def _number(chance: random.Random, depth: int) -> str:
    if not depth or chance.random() < 0.4:
        return chance.choice(NUMBERS)
    a, b = (_number(chance, depth - 1) for _ in "ab")
    return chance.choice(
        (
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"({a} % {b})",
            f"abs({a})",
            f"(-{a})",
            f"coalesce({a}, {b})",
            f"greatest({a}, {b})",
            f"least({a}, {b})",
            f"nullif({a}, {b})",
            f"if(truth, {a}, {b})",
            f"CAST({a} AS DOUBLE)",
            f"CAST({a} AS DECIMAL(38, 20))",
        )
    )


def _of_texts(chance: random.Random) -> str:
    chosen = [t for t in TEXTS if "\\" not in t and "\u0000" not in t]
    a, b = ("'" + chance.choice(chosen).replace("'", "''") + "'" for _ in "ab")
    column = chance.choice(("text", "`a b`", "text || `a b`"))
    return chance.choice(
        (
            f"{column} {chance.choice(OPERATORS)} {a}",
            f"{column} IN ({a}, {b})",
            f"{column} LIKE {chance.choice(('%', '_', 'a_b', '%b', 'a%', '_%_'))!r}",
            f"coalesce({column}, {a}) = {b}",
        )
    )


def _of_times(chance: random.Random) -> str:
    span = chance.choice(("1 HOUR", "24 HOURS", "1 DAY", "1 SECOND"))
    sign = chance.choice(OPERATORS)
    return chance.choice(
        (
            f"at {sign} later",
            f"later - at {sign} INTERVAL {span}",
            f"at + INTERVAL {span} {sign} later",
            f"at {sign} TIMESTAMP '2019-03-01 12:00:00'",
            f"at {sign} TIMESTAMP '0001-01-01 00:00:00'",
            f"day {sign} DATE '1500-01-01'",
            f"local {sign} local",
            f"greatest(at, later) {sign} at",
        )
    )
