"""What the lane types is what stands in the line; everything doubtful is left to the parser."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark import Contract, Field, readers
from rivermark.ingest.parse.cutter import Cutter
from rivermark.ingest.parse.lane.shapes import MOST_VALUES, shape_of
from rivermark.ingest.parse.parser import spelled
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
from tests.oracles.typed_values import arrays, assert_exact, lane
from tests.seeds import seeds


@pytest.mark.parametrize(
    ("made", "least", "most"), [(json_lines, 0.5, 0.9), (nested_lines, 0.3, 0.95)]
)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_typed_json_is_what_stands_in_the_line(
    seed: int, made: Callable[[int, int], Iterable[str]], least: float, most: float
) -> None:
    lines = arrays([*made(seed, 2_000)])
    typed = lane(EVERYTHING).type(*lines)
    cells = Cutter([spelled(f) for f in EVERYTHING.fields], ",").cut(*lines)
    assert_exact(EVERYTHING, typed, cells)
    assert least < typed.good.mean() < most


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_typed_csv_is_what_stands_in_the_line(seed: int) -> None:
    lines = arrays([*csv_lines(seed, 2_000)], "csv", CSV_COLUMNS)
    typed = lane(EVERYTHING).type(*lines)
    cells = Cutter([spelled(f) for f in EVERYTHING.fields], ",").cut(*lines)
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


def good(*lines: str, kind: str = "json", columns: Sequence[str] | None = None) -> list[bool]:
    return [bool(g) for g in lane(ONE).type(*arrays(lines, kind, columns)).good]


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
        LINE.replace('"x"', '"\\u0041"'),
        LINE.replace('"x"', '"a\tb"'),
        LINE.replace('"x"', '"a\ufffdb"'),
        LINE.replace('"x"', '" "'),
        LINE.replace('"x"', "x"),
        LINE.replace('"x"', "'x'"),
        "\ufeff" + LINE,
        "",
        " ",
        "null",
    ],
)
def test_what_is_not_plain_is_asked_for(line: str) -> None:
    assert good(LINE, line, LINE) == [True, False, True]
    assert good(line) == [False]


def test_a_double_with_an_exponent_is_typed_and_other_numbers_with_one_are_asked_for() -> None:
    def line(ratio: str, number: str = "1") -> str:
        return LINE.replace('"n": 1', f'"n": {number}').replace('"d": 2.5', f'"d": {ratio}')

    ratios = ("1e-05", "-0e0", "1.25E+3", "9e99", "-4.9E-20", "17e2")
    typed = lane(ONE).type(*arrays([line(ratio) for ratio in ratios]))
    assert typed.good.all()
    values = typed.columns["d"].to_pylist()
    assert [value.hex() for value in values] == [float(ratio).hex() for ratio in ratios]
    doubtful = ("1e100", "1e-400", "01e2", "1.e2", ".5e1", "1e", "1e+", "e5", "1e2.5", "1E5e5")
    assert good(*map(line, doubtful)) == [False] * len(doubtful)
    assert good(line("1", "1e2"), line("1", "2e-1")) == [False, False]
    # A column that is a text holds it as it is written.
    kept = lane(ONE).type(*arrays([LINE.replace('"x"', "1E2"), LINE.replace('"x"', "true")]))
    assert kept.columns["s"].to_pylist() == ["1E2", "true"]


def test_a_null_a_missing_key_and_other_keys_are_plain() -> None:
    null = LINE.replace('"x"', "null")
    missing = LINE.replace('"n": 1, ', "")
    more = LINE.replace('"n": 1', '"n": 1, "more": true, "most": "y, z"')
    again = lane(ONE).type(*arrays([LINE, null, missing, more]))
    assert again.good.all()
    assert again.columns["s"].to_pylist() == ["x", None, "x", "x"]
    assert again.columns["n"].to_pylist() == [1, 1, None, 1]


def test_an_object_is_plain_and_as_a_text_what_is_written() -> None:
    inner = '{"a" : 1, "b": {"c": "x } y", "d": null}, "e": {} }'
    for text in (inner, "{}", "{ }", '{"s": "in"}'):
        typed = lane(ONE).type(*arrays([LINE, LINE.replace('"x"', text), LINE]))
        assert typed.good.all(), text
        assert typed.columns["s"].to_pylist() == ["x", text, "x"]
        more = lane(ONE).type(*arrays([LINE.replace('"n": 1', f'"n": 1, "more": {text}')]))
        assert more.good.all(), text
        assert more.columns["s"].to_pylist() == ["x"]


def test_keys_are_looked_up_as_the_parser_does() -> None:
    upper = LINE.replace('"n"', '"N"')
    both = LINE.replace('"n": 1', '"N": 7, "n": 1')
    typed = lane(ONE).type(*arrays([upper, both]))
    assert typed.columns["n"].to_pylist() == [1, 1]


def test_a_required_value_that_is_missing_is_asked_for() -> None:
    assert good(LINE.replace('"2024-05-01T00:00:00Z"', "null")) == [False]


@pytest.mark.parametrize(
    ("wall", "plainly"),
    [
        ("2024-03-10T01:59:59", True),
        ("2024-03-10T02:00:00", False),
        ("2024-03-10T02:59:59", False),
        ("2024-03-10T03:00:00", True),
        ("2024-11-03T00:59:59", True),
        ("2024-11-03T01:00:00", False),
        ("2024-11-03T01:59:59.999999", False),
        ("2024-11-03T02:00:00", True),
        ("2023-12-31T00:00:00", False),
        ("2026-01-01T00:00:00", False),
    ],
)
def test_wall_clocks_beside_a_change_are_asked_for(wall: str, *, plainly: bool) -> None:
    assert good(json.dumps(GOOD | {"wall": wall})) == [plainly]


def test_csv_lines_with_doubtful_quotes_or_other_values_are_asked_for() -> None:
    columns = ("at", "n", "d", "s", "wall")
    line = "2024-05-01T00:00:00Z,1,2.5,x,2024-05-01 00:00:00"
    plainly = {
        line: True,
        line.replace("x", '"x"'): True,
        line.replace("x", '""'): True,
        '"' + line.replace(",", '","') + '"': True,
        line + ",,": True,
        line + ",,,,,": True,
        line + ",,,,,,": False,
        line + ",y": False,
        line + ',""': False,
        line + ",,y": False,
        line.replace(",x", ""): False,
        line.replace("x", '"a,b"'): False,
        line.replace("1,2.5,x", '1,"2.5,x"'): False,
        line.replace("x", '"a""b"'): False,
        line.replace("x", '"'): False,
        line.replace("x", '"x" '): False,
        line.replace("x", 'a"x"'): False,
        line.replace("x", '"x'): False,
        line.replace("1,2.5", '"1,2"'): False,
    }
    assert good(*plainly, kind="csv", columns=columns) == [*plainly.values()]


def test_what_the_lane_takes_of_csv_the_cutter_takes_too() -> None:
    columns = ("at", "n", "d", "s", "wall")
    draw = random.Random(7)
    parts = ["x", '"x"', '""', "", " ", '"', ",", '",', '"a""b"', "1", '"1"', " x", "é"]
    ends = ["", ",", ",,", ',""', ',"', " "]
    wall = "2024-05-01 00:00:00"
    lines = [
        ",".join([f'"{wall}"', "1", '"2.5"', *draw.choices(parts, k=draw.randint(1, 2)), wall])
        + draw.choice(ends)
        for _ in range(3_000)
    ]
    sent = arrays(lines, "csv", columns)
    typed = lane(ONE).type(*sent)
    cells = Cutter([spelled(f) for f in ONE.fields], ",").cut(*sent)
    assert_exact(ONE, typed, cells)
    assert 0.1 < typed.good.mean() < 0.9


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
    typed = lane(contract).type(*arrays([f'{{"at":"2024-05-01T00:00:00Z","d":{text}}}']))
    assert typed.good.tolist() == [value is not None]
    if value is not None:
        assert typed.columns["d"].to_pylist() == [Decimal(value)]


def test_rows_of_several_files_keep_their_order() -> None:
    columns = ("at", "n", "d", "s", "wall")
    csv = "2024-05-01T00:00:00Z,2,2.5,x,"
    payloads = pa.array([LINE, csv, LINE, csv])
    kinds = pa.array(["json", "csv", "json", "csv"])
    names = pa.array([None, json.dumps(columns), None, json.dumps(columns)])
    typed = lane(ONE).type(payloads, kinds, names)
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, 2, 1, 2]


def test_no_line_and_sliced_lines_are_fine() -> None:
    payloads, kinds, names = arrays([LINE] * 5)
    assert len(lane(ONE).type(payloads.slice(0, 0), kinds.slice(0, 0), names.slice(0, 0)).good) == 0
    assert lane(ONE).type(payloads.slice(2), kinds.slice(2), names.slice(2)).good.all()


def test_many_rows_are_looked_at_in_parts() -> None:
    draw = random.Random(3)
    lines = arrays([written(draw, plain(draw)) for _ in range(20_000)])
    typed = lane(EVERYTHING).type(*lines)
    cells = Cutter([spelled(f) for f in EVERYTHING.fields], ",").cut(*lines)
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
        lines = arrays([json.dumps(record, ensure_ascii=False).replace('"@@"', value)])
        typed = lane(EVERYTHING).type(*lines)
        cells = Cutter([spelled(f) for f in EVERYTHING.fields], ",").cut(*lines)
        assert_exact(EVERYTHING, typed, cells)


def test_one_shape_serves_lines_with_a_text_or_a_number_or_null_in_the_same_place() -> None:
    nulls = json.dumps(GOOD | {"n": None, "s": None, "wall": None})
    texts = [json.dumps(GOOD | {"n": None}), nulls, LINE.replace('"n": 1', '"n": null')]
    own = lane(ONE)
    typed = own.type(*arrays([nulls, *texts, nulls]))
    assert typed.good.all()
    assert typed.columns["s"].to_pylist() == [None, "x", None, "x", None]
    typed = own.type(*arrays([LINE, nulls]))
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, None]
    assert len(own._shapes) == 1


def test_a_line_of_a_rare_shape_is_typed_too() -> None:
    rare = LINE.replace('"n": 1, ', "")
    own = lane(ONE)
    for _ in range(2):
        typed = own.type(*arrays([*[LINE] * 5_000, rare, *[LINE] * 5_000]))
        assert typed.good.all()
        assert typed.columns["n"].null_count == 1
    assert own._shapes[0].keys == tuple(GOOD)


def test_n040_a_line_of_very_many_values_is_left_to_the_parser_and_costs_no_other() -> None:
    contract = Contract(
        fields=(Field("at", "timestamp", required=True), Field("note", "string")), event_time="at"
    )
    names = [f"k{n}" for n in range(MOST_VALUES)]
    values = dict.fromkeys(names[1:], "1") | {"at": "2024-03-01T10:00:00Z"}
    wide, wider = json.dumps(values), json.dumps(values | {"k0": "1"})
    usual = json.dumps({"at": "2024-03-01T10:00:00Z"})
    typed = lane(contract).type(*arrays([wider, wide, usual, wider, usual]))

    assert typed.good.tolist() == [False, True, True, False, True]
    assert shape_of(wider.encode()) is None
    for columns in (names, [*names, "more"]):
        header = [*columns[1:], "at"]
        line = ",".join(["1"] * (len(columns) - 1) + ["2024-03-01T10:00:00Z"])
        csv_typed = lane(contract).type(*arrays([line], "csv", header))
        assert csv_typed.good.tolist() == [len(columns) <= MOST_VALUES]
