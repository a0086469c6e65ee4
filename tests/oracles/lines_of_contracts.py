"""Lines of a contract with a field of every reader: plain, hostile and mutated ones, by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from rivermark import Contract, Field, Rule, readers

WORDS: Final = {"card": 1, "cash": 2}


PAYMENT: Final = readers.sql(
    "CASE lower(trim(text, ' ')) WHEN 'card' THEN 1 WHEN 'cash' THEN 2 END"
)
"""A reader of the contract's own: a word, or nothing."""


SUMMER: Final = (
    """date_diff('second', "at"::TIMESTAMP, timezone('America/New_York', "at")) > -4.5 * 3600"""
)


EVERYTHING: Final = Contract(
    fields=(
        Field("id", "long", required=True),
        Field("count", "int", ("Number",)),
        Field("little", "short"),
        Field("price", "decimal(12,2)", ("Amount", "total")),
        Field("exact", "decimal(38,9)"),
        Field("comma", "decimal(8,2)", read=readers.decimal(8, 2, decimal_comma=True)),
        Field("ratio", "double", required=True),
        Field("single", "float"),
        Field("flag", "boolean", nulls=("-",)),
        Field("at", "timestamp", required=True),
        Field("wall", "timestamp", read=readers.local_timestamp("America/New_York")),
        Field("berlin", "timestamp", read=readers.local_timestamp("Europe/Berlin")),
        Field("tick", "timestamp", read=readers.epoch_millis()),
        Field("text", "string", required=True),
        Field("note", "string", nulls=("NA", "-1", "n/a")),
        Field("code", "int", nulls=("-1", "0.0")),
        Field("paid", "int", read=PAYMENT),
        Field("narrow", "int", read=readers.integer()),
        Field("text_again", "string", ("text",)),
    ),
    event_time="at",
    rules=(
        Rule("negative", "price < 0", "quarantine", "No price is negative."),
        Rule("late_wall", 'wall > "at"', "flag", "The wall is ahead."),
        Rule("long_text", "length(text) > 9", "flag", "A long text."),
        Rule("of_many", f"narrow IN {(*range(0, 60, 4),)}", "flag", "Of a set."),
        Rule("summer", SUMMER, "flag", "By the clock of New York."),
        Rule("dashed", "_file LIKE '%-%'", "flag", "By a pattern."),
        Rule("named_file", "contains(_file, 'x')", "flag", "By the file's name."),
    ),
    max_ahead=timedelta(hours=1),
)

INTEGERS: Final = (
    *("0", "-0", "7", "-12", "007", "+5", "2147483647", "2147483648", "-32769", "1.0", "1.50"),
    *("999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "1e3", "1E+2", "0x1F", "1_000", "1,5", "12.000000000", "5."),
    *("12.0000000001", ".5", "-", "--1", "1-", "٣", "1.2.3", "NaN", "Infinity", "1f", "1d", "1L"),
    *("0.1", "0.005", "0.015", "-0.005", "9999999999.99", "10000000000.00", "123456789012345678.9"),
    *("0.1234567890123456789", "21.700000000000003", "179769313486231570000", "4.9E-324"),
    *("123456789012345678901234", "1234567890123456789012345", "-1", "0.0", "340282350000000000"),
)
TIMES: Final = (
    *("2024-01-01T00:00:00Z", "2024-01-01 00:00:00", "2024-02-29T23:59:59.999999Z"),
    *("2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-10T00:00:00", "2024-01-32T00:00:00"),
    *("2024-01-01T24:00:00Z", "2024-01-01T23:60:00Z", "2024-01-01T23:59:60Z", "2024-01-01T00:00Z"),
    *("2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00.123456789Z", "2024-01-01T00:00:00.Z"),
    *("2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00-05:30", "2024-01-01T00:00:00+0100"),
    *("2024-01-01T00:00:00+19:00", "2024-01-01T00:00:00+18:00", "2024-01-01T00:00:00+01"),
    *("2024-01-01T00:00:00 UTC", "2024-01-01T00:00:00z", "2024-01-01T00:00:00.5+02:00"),
    *("0009-01-01T00:00:00Z", "1582-10-10T00:00:00Z", "1583-01-01T00:00:00", "1969-12-31T23:59:59"),
    *("9999-12-31T23:59:59.999999Z", "2100-01-01T00:00:00Z", "1970-01-01T00:00:00"),
    *("2024-03-10T01:59:59", "2024-03-10T02:00:00", "2024-03-10T02:30:00", "2024-03-10T03:00:00"),
    *("2024-11-03T00:59:59", "2024-11-03T01:00:00", "2024-11-03T01:59:59", "2024-11-03T02:00:00"),
    *("2024-03-31T01:59:59", "2024-03-31T02:30:00", "2024-10-27T02:30:00", "2024-10-27T03:00:00"),
    *("1974-01-06T02:30:00", "2037-06-01T12:00:00", "2038-02-01T12:00:00", "2039-06-01T12:00:00"),
    *("2024-01-01", "12:00:00", "2024/01/01 00:00:00", "2024-1-1T00:00:00", "now", "epoch"),
    *("1704067200000", "1704067200000.0", "-1", "253402300800000", "-62135596800001"),
)
OTHERS: Final = (
    *("true", "false", "True", "TRUE", "t", "f", "yes", "no", "y", "n", "1", "0", "-", "", " "),
    *("NA", " NA ", "n/a", "null", "card", "Cash", "cheque", " x", "x ", "a,b", "Zoë", "日本"),
    *("a\ufffdb", "\ufeffx", "tab\there", 'quo"te', "back\\slash", "a\u2028b", "{", "}", "[1]"),
    *("a text longer than the thirty-two bytes of a window, and a comma in it", "\x7f", "\u0001"),
)
BARE: Final = ("null", "true", "false", "NaN", "Infinity", "[1,2]", '{"a":1}', "nul", "nullx", "01")


def plain(draw: random.Random) -> dict[str, object]:
    """An object as a source would send it."""
    wall = f"2024-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}T0{draw.randint(0, 9)}:30:00"
    return {
        "id": draw.randint(-(10**17), 10**17),
        "Number": draw.choice([None, draw.randint(0, 9999)]),
        "little": draw.randint(-30000, 30000),
        "price": draw.choice([1.5, 12.25, -3, 7, 0.1 + 0.2, -2.675, 1.0049999]),
        "exact": "123456789.123456789",
        "comma": "12,5",
        "ratio": draw.choice([draw.random() * 1e-7, draw.randint(1, 9), draw.uniform(-180, 180)]),
        "single": draw.choice([0.1, 2.5, 16777217]),
        "flag": draw.random() < 0.5,
        "at": f"2024-05-01T12:00:{draw.randint(10, 59)}.{draw.randint(100, 999)}Z",
        "wall": wall,
        "berlin": wall.replace("T", " "),
        "tick": 1_704_067_200_000 + draw.randint(0, 10**9),
        "text": draw.choice(["short", "a longer text", "with, comma", "Zoë"]),
        "note": draw.choice(["NA", "yes", ""]),
        "code": draw.choice([-1, 5]),
        "paid": draw.choice(["card", "Cash"]),
        "narrow": draw.randint(0, 100),
    }


def written(draw: random.Random, record: dict[str, object]) -> str:
    """The object as a JSON line, in one of the usual spellings."""
    gaps = draw.choice([(",", ":"), (", ", ": ")])
    return json.dumps(record, separators=gaps, ensure_ascii=draw.random() < 0.1)


def hostile(draw: random.Random) -> str:
    """An object with one value, key or byte that is not as usual."""
    record = plain(draw)
    key = draw.choice([*record])
    value = draw.choice(draw.choice([INTEGERS, TIMES, OTHERS]))
    match draw.randrange(8):
        case 0:
            record[key] = value
        case 1 | 2:
            line = written(draw, record | {key: "@@"})
            return line.replace('"@@"', draw.choice([value, draw.choice(BARE)]))
        case 3:
            record[draw.choice([key.upper(), key.title(), f" {key}", "total", "Amount"])] = value
        case 4:
            del record[key]
        case 5:
            line = written(draw, record)
            return line[:-1] + "," + json.dumps({key: value}, ensure_ascii=False)[1:]
        case 6:
            return mutated(draw, written(draw, record))
        case _:
            ends = ["", " ", "}", "{}", written(draw, plain(draw)), ",", "\t", " x"]
            return draw.choice(["", "", " ", "\ufeff"]) + written(draw, record) + draw.choice(ends)
    return written(draw, record)


def mutated(draw: random.Random, line: str) -> str:
    """The line with a few characters lost, doubled, changed or put in."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(line) + 1)
        put = draw.choice(["", "", line[at : at + 1] * 2, *'0129",:{}[]\\-+.eE TZnul\t', "\ufffd"])
        line = line[:at] + put + line[at + draw.randrange(2) :]
    return line


def json_lines(seed: int, count: int) -> Iterator[str]:
    """Lines of which two in three are plain."""
    draw = random.Random(seed)
    for _ in range(count):
        yield hostile(draw) if draw.random() < 0.34 else written(draw, plain(draw))


def nested_lines(seed: int, count: int) -> Iterator[str]:
    """Objects with objects within them, for texts, for other fields and for none; some mutated."""
    draw = random.Random(seed)
    for _ in range(count):
        record = plain(draw)
        inner: dict[str, object] = {"a": draw.randint(-9, 9), "b": {"c": "x, }", "d": {}}}
        record[draw.choice(["note", "more"])] = inner
        line = json.dumps(record)
        match draw.randrange(25):
            case 0:
                line = mutated(draw, line)
            case 1:
                record[draw.choice([*record])] = draw.choice([{}, [inner], {"text": "in"}])
                line = json.dumps(record)
            case 2:
                other = draw.choice(['"d": {"', '"d": {,}', '"d": {}}', "{}"])
                line = line.replace('"d": {}', other)
            case 3:
                other = draw.choice(['"more": ', '"c": "", "c": ', '"NOTE": '])
                line = line.replace('"c": ', other)
            case 4:
                other = draw.choice(['"NOTE"', '"Text"', '"narrow"', '"text"'])
                line = line.replace('"more"', other)
        yield line


CSV_COLUMNS: Final = ("ID", *(f.name for f in EVERYTHING.fields[1:-1]), "Amount", "other")


def csv_lines(seed: int, count: int) -> Iterator[str]:
    """The same as CSV lines of `CSV_COLUMNS`, the first one their header."""
    draw = random.Random(seed)
    yield ",".join(CSV_COLUMNS)
    for _ in range(count):
        record = {key.lower(): value for key, value in plain(draw).items()} | {"comma": 12}
        values = [str(record.get(name.lower()) or "") for name in CSV_COLUMNS]
        values = [value.replace(",", ";") for value in values]
        if draw.random() < 0.2:
            values = [f'"{value}"' if draw.random() < 0.8 else value for value in values]
        if draw.random() < 0.1:
            values += draw.choice([[""], ["", ""], ['""'], ["x"], [""] * len(values)])
        if draw.random() < 0.34:
            at = draw.randrange(len(values))
            values[at] = draw.choice(draw.choice([INTEGERS, TIMES, OTHERS]))
            if draw.random() < 0.2:
                yield mutated(draw, ",".join(values))
                continue
        yield ",".join(values)
