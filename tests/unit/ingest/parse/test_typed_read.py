"""Typed values are those that stand in the line; what is doubtful is left to the careful parser."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark import Contract, Field, readers
from rivermark.ingest.parse.cutter import Cutter, Spelled
from rivermark.ingest.parse.typed_json import MOST_KEYS
from rivermark.ingest.parse.typed_read import MOST_COLUMNS
from tests.oracles.lines_of_contracts import (
    CSV_COLUMNS,
    EVERYTHING,
    INTEGERS,
    TIMES,
    csv_lines,
    json_lines,
    nested_lines,
    plain,
    written,
)
from tests.oracles.typed_values import arrays, assert_exact, typed_read
from tests.seeds import seeds


@pytest.mark.parametrize(
    ("made", "least", "most"), [(json_lines, 0.5, 0.9), (nested_lines, 0.3, 0.95)]
)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_typed_json_is_what_stands_in_the_line(
    seed: int, made: Callable[[int, int], Iterable[str]], least: float, most: float
) -> None:
    lines = arrays([*made(seed, 2_000)])
    typed = typed_read(EVERYTHING).read(*lines)
    cells = Cutter([Spelled.of(f) for f in EVERYTHING.fields], ",").cut(*lines)
    assert_exact(EVERYTHING, typed, cells)
    assert least < typed.good.mean() < most


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_typed_csv_is_what_stands_in_the_line(seed: int) -> None:
    lines = arrays([*csv_lines(seed, 2_000)], "csv", CSV_COLUMNS)
    typed = typed_read(EVERYTHING).read(*lines)
    cells = Cutter([Spelled.of(f) for f in EVERYTHING.fields], ",").cut(*lines)
    assert_exact(EVERYTHING, typed, cells)
    assert 0.5 < typed.good.mean() < 0.9


ONE = Contract(
    fields=(
        Field("at", "timestamp", required=True),
        Field("n", "long"),
        Field("d", "double"),
        Field("s", "string"),
        Field("wall", "timestamp", read=readers.local_timestamp("America/New_York")),
    ),
    event_time="at",
)
GOOD = {"at": "2024-05-01T00:00:00Z", "n": 1, "d": 2.5, "s": "x", "wall": "2024-05-01T00:00:00"}


COLUMNS = ("at", "n", "d", "s", "wall")
AROUND = 30
"""Plain lines before those that are looked at: a few lines alone are not worth to be typed."""


def typed(
    *lines: str, kind: str = "json", columns: Sequence[str] | None = None
) -> tuple[list[bool], dict[str, list[object]]]:
    """Mask of the lines that are typed among plain ones, and the columns of those that are."""
    usual = ",".join(map(str, GOOD.values())) if kind == "csv" else LINE
    read = typed_read(ONE).read(*arrays([usual] * AROUND + [*lines], kind, columns))
    assert read.good[:AROUND].all()
    found = {name: column.to_pylist()[AROUND:] for name, column in read.columns.items()}
    return read.good[AROUND:].tolist(), found


def good(*lines: str, kind: str = "json", columns: Sequence[str] | None = None) -> list[bool]:
    return typed(*lines, kind=kind, columns=columns)[0]


LINE = json.dumps(GOOD)


@pytest.mark.parametrize(
    "line",
    [
        LINE + " x",
        LINE + LINE,
        LINE + "}",
        LINE[:-1],
        LINE[1:],
        "[" + LINE + "]",
        LINE.replace('"n": 1', '"n": 1, "n": 1'),
        LINE.replace('"n": 1', '"n": 01'),
        LINE.replace('"n": 1', '"n": +1'),
        LINE.replace('"n": 1', '"n": 1.'),
        LINE.replace('"n": 1', '"n": .5'),
        LINE.replace('"n": 1', '"n": 1.5'),
        LINE.replace('"n": 1', '"n": nullx'),
        LINE.replace('"n": 1', '"n": nul'),
        LINE.replace('"n": 1', '"n": true'),
        LINE.replace('"n": 1', '"n": NaN'),
        LINE.replace('"n": 1', '"n": [1]'),
        LINE.replace('"n": 1', '"n": {"a": 1}'),
        LINE.replace('"n": 1', '"n": 1, "n": {}'),
        LINE.replace('"n": 1', '"n": 1, "S": {}'),
        LINE.replace('"x"', '{"a": [1]}'),
        LINE.replace('"x"', '{"a": 01}'),
        LINE.replace('"x"', '{"a": 1,}'),
        LINE.replace('"x"', '{"a": 1}}'),
        LINE.replace('"x"', '{"a": {}'),
        LINE.replace('"x"', '{"a"}'),
        LINE.replace('"x"', "{,}"),
        LINE.replace('"x"', '{"a":' * 9 + "1" + "}" * 9),
        LINE.replace('"n": 1', '"n": 1234567890123456789012345'),
        LINE.replace('"x"', '"a\tb"'),
        LINE.replace('"x"', '"a\ufffdb"'),
        LINE.replace('"x"', "x"),
        LINE.replace('"x"', "'x'"),
        "\ufeff" + LINE,
        "",
        " ",
        "null",
    ],
)
def test_what_is_not_plain_is_asked_for(line: str) -> None:
    assert good(line) == [False]
    assert good(LINE, line, LINE) == [True, False, True]


def test_numbers_that_are_spelled_otherwise_are_what_their_readers_say() -> None:
    def line(ratio: str, number: str = "1") -> str:
        return LINE.replace('"n": 1', f'"n": {number}').replace('"d": 2.5', f'"d": {ratio}')

    ratios = ("1e-05", "-0e0", "1.25E+3", "9e99", "-4.9E-20", "17e2")
    are_typed, columns = typed(*map(line, ratios))
    assert all(are_typed)
    values = [value.hex() for value in columns["d"] if isinstance(value, float)]
    assert values == [float(ratio).hex() for ratio in ratios]
    # No JSON, no double, or with an exponent of too many digits for a number.
    for ratio in ("01e2", "1.e2", ".5e1", "1e", "1e+", "e5", "1e2.5", "1e400", "1e0005", "1e-4000"):
        assert good(line(ratio)) == [False], ratio
    # Each by its own reader, where many of them fail the schema.
    are_typed, columns = typed(*[line("1", "1e2")] * 20)
    assert all(are_typed)
    assert columns["n"] == [100] * 20


def test_a_text_field_has_a_number_as_it_is_written() -> None:
    lines = [LINE.replace('"x"', text) for text in ("1E2", "1.10", "-0", "true", "0.10")] * 20
    are_typed, columns = typed(*lines)
    assert all(are_typed)
    assert columns["s"] == ["1E2", "1.10", "-0", "true", "0.10"] * 20


def test_a_null_a_missing_key_and_other_keys_are_plain() -> None:
    null = LINE.replace('"x"', "null")
    missing = LINE.replace('"n": 1, ', "")
    assert typed(null, missing)[1] == {
        **{name: column * 2 for name, column in typed(LINE)[1].items()},
        "s": [None, "x"],
        "n": [1, None],
    }
    more = LINE.replace('"n": 1', '"n": 1, "more": true, "most": "y, z"')
    are_typed, columns = typed(*[more] * 20)
    assert all(are_typed)
    assert columns["n"] == [1] * 20


def test_an_object_of_another_key_is_plain() -> None:
    for text in ('{"a" : 1, "b": {"c": "x } y", "d": null}, "e": {} }', "{}", "[1, 2]"):
        are_typed, columns = typed(*[LINE.replace('"n": 1', f'"n": 1, "more": {text}')] * 20)
        assert all(are_typed), text
        assert columns["s"] == ["x"] * 20


def test_keys_are_looked_up_as_the_parser_does() -> None:
    upper = LINE.replace('"n"', '"N"')
    both = LINE.replace('"n": 1', '"N": 7, "n": 1')
    are_typed, columns = typed(*[upper] * 20, *[both] * 20)
    assert are_typed == [True] * 20 + [False] * 20
    assert columns["n"] == [1] * 20
    assert good(upper) == [False]


def test_a_required_value_that_is_missing_is_asked_for() -> None:
    assert good(LINE.replace('"2024-05-01T00:00:00Z"', "null")) == [False]


@pytest.mark.parametrize(
    ("wall", "utc"),
    [
        ("2024-03-10T01:59:59", "06:59:59"),
        ("2024-03-10T02:00:00", "07:00:00"),
        ("2024-03-10T02:59:59", "07:59:59"),
        ("2024-03-10T03:00:00", "07:00:00"),
        ("2024-11-03T00:59:59", "04:59:59"),
        ("2024-11-03T01:00:00", "05:00:00"),
        ("2024-11-03T01:59:59.999999", "05:59:59.999999"),
        ("2024-11-03T02:00:00", "07:00:00"),
    ],
)
def test_wall_clocks_beside_a_change_are_read(wall: str, utc: str) -> None:
    are_typed, columns = typed(*[json.dumps(GOOD | {"wall": wall})] * 20)
    assert all(are_typed)
    day = wall.split("T")[0]
    assert columns["wall"] == [datetime.fromisoformat(f"{day}T{utc}+00:00")] * 20


def test_csv_lines_with_doubtful_quotes_or_other_values_are_asked_for() -> None:
    line = "2024-05-01T00:00:00Z,1,2.5,x,2024-05-01 00:00:00"
    plainly = {
        line: True,
        line.replace("x", '"x"'): True,
        line.replace("x", '""'): True,
        '"' + line.replace(",", '","') + '"': True,
        line + ",,": False,
        line + ",,,,,": False,
        line + ",,,,,,": False,
        line + ",y": False,
        line + ',""': False,
        line + ",,y": False,
        line.replace(",x", ""): False,
        line.replace("x", '"a,b"'): True,
        line.replace("1,2.5,x", '1,"2.5,x"'): False,
        line.replace("x", '"a""b"'): False,
        line.replace("x", '"'): False,
        line.replace("x", '"x" '): False,
        line.replace("x", 'a"x"'): False,
        line.replace("x", '"x'): False,
        line.replace("1,2.5", '"1,2"'): False,
    }
    assert good(*plainly, kind="csv", columns=COLUMNS) == [*plainly.values()]
    # Where many lines end so, those are plain.
    for more in (",,", ",,,,,"):
        assert good(*[line + more] * 20, kind="csv", columns=COLUMNS) == [True] * 20


def test_what_is_typed_of_csv_the_cutter_takes_too() -> None:
    draw = random.Random(7)
    parts = ["x", '"x"', '""', "", " ", '"', ",", '",', '"a""b"', "1", '"1"', " x", "é"]
    ends = ["", ",", ",,", ',""', ',"', " "]
    wall = "2024-05-01 00:00:00"
    lines = [
        ",".join([f'"{wall}"', "1", '"2.5"', *draw.choices(parts, k=draw.randint(1, 2)), wall])
        + draw.choice(ends)
        for _ in range(3_000)
    ]
    sent = arrays(lines, "csv", COLUMNS)
    read = typed_read(ONE).read(*sent)
    cells = Cutter([Spelled.of(f) for f in ONE.fields], ",").cut(*sent)
    assert_exact(ONE, read, cells)
    assert 0.1 < read.good.mean() < 0.9


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.005", "1.01"),
        ("1.0049999999", "1.00"),
        ("-1.005", "-1.01"),
        ("-0.005", "-0.01"),
        ("-0.004", "0.00"),
        ("0.995", "1.00"),
        ("999999.994", "999999.99"),
        ("999999.995", None),
        ("-999999.995", None),
        ("1000000.00", None),
        ("21.700000000000003", "21.70"),
    ],
)
def test_decimals_are_rounded_half_up(text: str, value: str | None) -> None:
    contract = Contract(
        fields=(Field("at", "timestamp", required=True), Field("d", "decimal(8,2)")),
        event_time="at",
    )
    for spelled in (text, f'"{text}"'):
        lines = arrays([f'{{"at":"2024-05-01T00:00:00Z","d":{spelled}}}'] * 20)
        read = typed_read(contract).read(*lines)
        assert read.good.tolist() == [value is not None] * 20
        assert read.columns["d"].to_pylist() == ([Decimal(value)] * 20 if value else [])


def test_rows_of_several_files_keep_their_order() -> None:
    csv = "2024-05-01T00:00:00Z,2,2.5,x,"
    payloads = pa.array([LINE, csv] * 20)
    kinds = pa.array(["json", "csv"] * 20)
    names = pa.array([None, json.dumps(COLUMNS)] * 20)
    read = typed_read(ONE).read(payloads, kinds, names)
    assert read.good.all()
    assert read.columns["n"].to_pylist() == [1, 2] * 20


def test_no_line_and_sliced_lines_are_fine() -> None:
    sent = arrays([LINE] * 50)
    assert len(typed_read(ONE).read(*(each.slice(0, 0) for each in sent)).good) == 0
    assert typed_read(ONE).read(*(each.slice(2) for each in sent)).good.all()


def test_many_rows_are_looked_at_in_parts() -> None:
    draw = random.Random(3)
    lines = arrays([written(draw, plain(draw)) for _ in range(20_000)])
    typed = typed_read(EVERYTHING).read(*lines)
    cells = Cutter([Spelled.of(f) for f in EVERYTHING.fields], ",").cut(*lines)
    assert_exact(EVERYTHING, typed, cells)
    assert typed.good.mean() > 0.9


@given(
    st.sampled_from((*INTEGERS, *TIMES)) | st.text("0123456789.-+eE", max_size=30), st.booleans()
)
def test_any_number_or_time_is_read_exactly_or_not_at_all(text: str, quoted: bool) -> None:
    value = json.dumps(text, ensure_ascii=False) if quoted else text
    line = written(random.Random(0), plain(random.Random(0)))
    for key in ("little", "price", "ratio", "tick", "code", "wall"):
        record = json.loads(line) | {key: "@@"}
        odd = json.dumps(record, ensure_ascii=False).replace('"@@"', value)
        for others in ([line] * 20, [odd] * 20):
            lines = arrays([*others, odd])
            read = typed_read(EVERYTHING).read(*lines)
            cells = Cutter([Spelled.of(f) for f in EVERYTHING.fields], ",").cut(*lines)
            assert_exact(EVERYTHING, read, cells)


def test_lines_of_several_kinds_are_typed() -> None:
    nulls = json.dumps(GOOD | {"n": None, "s": None, "wall": None})
    lines = [nulls, json.dumps(GOOD | {"n": None}), LINE.replace('"n": 1', '"n": "7"')] * 20
    are_typed, columns = typed(*lines)
    assert all(are_typed)
    assert columns["n"] == [None, None, 7] * 20
    assert columns["s"] == [None, "x", "x"] * 20


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
def test_of_lines_with_broken_ones_among_them_those_alone_are_asked_for(share: float) -> None:
    draw = random.Random(5)
    lines = [LINE] * 20_000
    broken = draw.sample(range(len(lines)), int(len(lines) * share))
    for row in broken:
        lines[row] = draw.choice([LINE[:-3], LINE + " x", LINE.replace(": 1", ": 1.5")])
    read = typed_read(ONE).read(*arrays(lines))
    assert sorted(np.flatnonzero(~read.good).tolist()) == sorted(broken)


def test_n040_a_line_of_very_many_values_is_left_to_the_parser_and_costs_no_other() -> None:
    contract = Contract(
        fields=(Field("at", "timestamp", required=True), Field("note", "string")), event_time="at"
    )
    names = [f"k{n}" for n in range(MOST_KEYS)]
    wide = json.dumps(dict.fromkeys(names, "1") | {"at": "2024-03-01T10:00:00Z"})
    usual = json.dumps({"at": "2024-03-01T10:00:00Z"})
    read = typed_read(contract).read(*arrays([wide, usual, usual, wide, usual] * 20))

    assert read.good.tolist() == [False, True, True, False, True] * 20
    for count in (MOST_COLUMNS, MOST_COLUMNS + 1):
        header = [*(f"k{n}" for n in range(count - 1)), "at"]
        line = ",".join(["1"] * (count - 1) + ["2024-03-01T10:00:00Z"])
        csv = typed_read(contract).read(*arrays([line] * 20, "csv", header))
        assert csv.good.tolist() == [count <= MOST_COLUMNS] * 20


def test_an_object_that_goes_on_in_the_next_line_is_asked_for() -> None:
    halves = ['{"at":"2024-05-01T00:00:00Z"}{"s":"}', '{"}']
    assert good(*halves) == [False, False]
    assert good(LINE + LINE, "", LINE) == [False, False, True]
