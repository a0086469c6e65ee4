"""What a payload's text becomes before it is typed, with Python's json and csv as oracles."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rivermark.ingest.parse.cutter import Cutter, Spelled, values_of
from rivermark.ingest.parse.json_object import MOST_LEVELS

GOOD = '{"sensor": "s", "count": 1}'
FIELDS = ("sensor", "count", "note")


def field(name: str, *names: str, nulls: Sequence[str] = ("",)) -> Spelled:
    return Spelled(name, (name, *names), tuple(nulls))


WANTED = tuple(field(name) for name in FIELDS)


def texts(
    *lines: str | None,
    kind: str = "json",
    columns: Sequence[str] | None = None,
    fields: Sequence[Spelled] = WANTED,
    delimiter: str = ",",
) -> list[dict[str, str | None]]:
    """What is cut out of each line: fields with a text, and why the line is malformed."""
    cut = Cutter(fields, delimiter).cut(
        pa.array(lines, pa.string()),
        pa.array([kind] * len(lines), pa.string()),
        pa.array([columns and json.dumps(columns)] * len(lines), pa.string()),
    )
    return [{k: v for k, v in row.items() if v is not None} for row in cut.to_pylist()]


@pytest.mark.parametrize("kind", ["json", "csv", "text"])
def test_n040_a_row_beyond_the_bound_is_too_large_and_its_neighbours_are_read(kind: str) -> None:
    lines = {"json": '{"text":"%s"}', "csv": "%s", "text": "%s"}
    payloads = [lines[kind] % text for text in ("ä", "a" * 100, "b")]
    cut = Cutter([field("text")], ",", max_bytes=50).cut(
        pa.array(payloads, pa.string()),
        pa.array([kind] * 3, pa.string()),
        pa.array(['["text"]'] * 3, pa.string()),
    )
    assert cut.to_pylist() == [
        {"text": "ä", "_malformed": None},
        {"text": None, "_malformed": "row_too_large"},
        {"text": "b", "_malformed": None},
    ]


UNPARSABLE = {"_malformed": "unparsable_json"}


@pytest.mark.parametrize(
    "behind",
    [
        ',{"sensor":"t"}',
        "}",
        "]",
        ",",
        " trailing words }",
        ',[{"sensor":"t"}]}',
        ', {"sensor": "t", "count": {}}',
        GOOD,
        f" {GOOD}",
        f"\t{GOOD}",
        "//",
        "\x00",
        "\u00a0",
        "\u2028",
        "\ufeff",
        "1",
        "null",
        '""',
    ],
)
def test_n001_data_behind_an_object_makes_its_line_unparsable(behind: str) -> None:
    assert texts(GOOD + behind, GOOD) == [UNPARSABLE, {"sensor": "s", "count": "1"}]


@pytest.mark.parametrize(
    ("kind", "line"),
    [("json", GOOD), ("csv", "s,1"), ("csv", '"s","1"'), ("text", "s")],
)
def test_a_mark_before_a_line_within_a_file_is_no_part_of_it(kind: str, line: str) -> None:
    fields = [field("sensor", "text"), field("count")]
    without, marked = texts(
        line, "\ufeff" + line, kind=kind, columns=("sensor", "count"), fields=fields
    )
    assert without == marked
    assert without["sensor"] == "s"


@pytest.mark.parametrize("before", ["[", ",", "x", "\x00", "\u00a0", "{", "{}", "null "])
def test_n001_data_before_an_object_makes_its_line_unparsable(before: str) -> None:
    assert texts(before + GOOD) == [UNPARSABLE]


@pytest.mark.parametrize("line", ["[]", f"[{GOOD}]", "1", '"text"', "null", "true", "", "{", None])
def test_what_is_no_object_is_unparsable(line: str | None) -> None:
    assert texts(line) == [UNPARSABLE]


@pytest.mark.parametrize("space", [" ", "\t", "\r", "\n", " \t\r\n"])
def test_space_around_an_object_and_a_byte_order_mark_are_no_part_of_it(space: str) -> None:
    assert texts(space + GOOD + space, "\ufeff" + GOOD) == 2 * [{"sensor": "s", "count": "1"}]


def test_n002_keys_are_looked_up_in_any_letter_case_in_each_row() -> None:
    lines = ['{"sensor": "s"}', '{"sensor": "s", "Note": "a", "COUNT": 5}', '{"note": "b"}']

    assert texts(*lines) == [
        {"sensor": "s"},
        {"sensor": "s", "note": "a", "count": "5"},
        {"note": "b"},
    ]


@pytest.mark.parametrize(
    "first", ["xx", "{}", '{"sensor":"s"}', "{" + " " * (1 << 20), '{"note":"a\u2028b"}']
)
def test_n003_the_first_line_decides_nothing_about_the_others(first: str) -> None:
    line = '{"SENSOR":"s","Note":"kept","COUNT":7}'

    assert texts(first, line)[1] == {"sensor": "s", "note": "kept", "count": "7"}
    # Whatever the file is said to hold.
    assert texts(line, columns=["x", "note"]) == [{"sensor": "s", "note": "kept", "count": "7"}]


@pytest.mark.parametrize(
    "number",
    ["12345678901234567.89", "9007199254740993.0", "1.10", "1E2", "1e400", "-0", "0.10", "1e-7",
     "0.123456789012345678", "9" * 5000, "NaN", "Infinity", "-Infinity"],
)  # fmt: skip
def test_n004_numbers_are_the_text_they_are(number: str) -> None:
    assert texts(f'{{"count": {number} , "note":{number}}}') == [{"count": number, "note": number}]


@pytest.mark.parametrize(
    "written", ['[1.10, {"a" : 1E2}]', '{"b":1 ,"b": "\\u00e9"}', "[ ]", '"[1]"', '["]}", "\\""]']
)
def test_n004_what_is_nested_is_the_text_it_is(written: str) -> None:
    line = f'{{ "sensor" :"s" , "note":{written} ,"x":[{{}}]}}'

    text = json.loads(written) if written.startswith('"') else written
    assert texts(line) == [{"sensor": "s", "note": text}]
    assert texts(line.replace("note", "NOTE")) == [{"sensor": "s", "note": text}]


def test_truth_values_are_words_and_null_is_no_value() -> None:
    line = '{"sensor": true, "count": false, "note": null}'
    assert texts(line) == [{"sensor": "true", "count": "false"}]


def test_n006_a_line_nested_too_deep_is_unparsable_and_nothing_raises() -> None:
    def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
        return '{"note": ' + opening * levels + "1" + closing * levels + "}"

    for deep in (MOST_LEVELS, 5000, 100_000):
        objects = nested(deep, '{"a":', "}")
        broken = "[" * deep, '{"sensor":' * deep, nested(deep)[:-3]
        assert texts(nested(deep), objects, *broken) == [UNPARSABLE] * 5
    within = nested(MOST_LEVELS - 1)
    assert texts(within) == [{"note": within[9:-1]}]
    # Brackets in texts and side by side are no levels.
    wide = '{"sensor": "s", "x": [' + ",".join(["[[]]"] * 1000) + '], "y": "' + "[" * 1000 + '"}'
    assert texts(wide) == [{"sensor": "s"}]


def test_n018_of_a_key_that_occurs_twice_the_last_value_counts() -> None:
    assert texts('{"count": 1, "count": 2}', '{"COUNT": 1, "Count": 2}') == 2 * [{"count": "2"}]


@pytest.mark.parametrize("line", ['{"Count":2,"count":1}', '{"count":1,"COUNT":2}'])
def test_n018_the_exact_spelling_is_taken_before_other_letter_cases(line: str) -> None:
    assert texts(line) == [{"count": "1"}]


def test_the_first_spelling_with_a_value_is_taken_unless_it_is_a_word_for_none() -> None:
    amount = field("amount", "fare", nulls=("", "NA"))
    lines = [
        '{"fare":2,"amount":1}',
        '{"fare":2,"amount":null}',
        '{"Fare":2}',
        '{"fare":" NA "}',
        '{"amount":"NA","fare":2}',
    ]

    assert texts(*lines, fields=[amount]) == [{"amount": "1"}, *2 * [{"amount": "2"}], {}, {}]


@pytest.mark.parametrize("half", ["\\ud800", "\\uDFFF", "a\\udc00\\ud800b"])
def test_an_escape_of_half_a_character_in_a_wanted_text_is_undecodable(half: str) -> None:
    wanted, other = f'{{"note":"{half}"}}', f'{{"sensor":"s","x":"{half}"}}'

    assert texts(wanted, other) == [{"_malformed": "undecodable_text"}, {"sensor": "s"}]
    assert texts('{"note":"\\ud83d\\ude00\\u0000"}') == [{"note": "\U0001f600\x00"}]


@pytest.mark.parametrize("line", ["{'sensor':'s'}", '{"note":"a\tb"}', '{"count":01}',
                                  '{"count":1.}', '{"count":+1}', '{"note":"\\x41"}', '{sensor:1}',
                                  '{"count":1,}', '{"count":\u0661}', '{"note":"a'])  # fmt: skip
def test_what_json_does_not_have_is_unparsable(line: str) -> None:
    assert texts(line) == [UNPARSABLE]


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*FIELDS, "Note", "COUNT", "x", ""]), Json),
    st.sampled_from([None, 0, 1, 2]),
    st.booleans(),
)
def test_any_object_is_read_as_python_reads_it(
    value: dict[str, Any], indent: int | None, escaped: bool
) -> None:
    line = json.dumps(value, ensure_ascii=escaped, indent=indent)
    line = line if escaped else line.encode(errors="replace").decode()
    read = json.loads(line)
    (cut,) = texts(line)

    for name in FIELDS:
        cased = [k for k in read if k.lower() == name]
        wanted = read[name if name in read else cased[-1]] if cased else None
        text = cut.get(name)
        if isinstance(wanted, str):
            assert text == (wanted if wanted.strip(" ") else None)
        else:
            assert wanted == (None if text is None else json.loads(text))


@given(st.text(alphabet='{}[]",:\\su0dntrue1e.- \t\ufeff', max_size=30))
@example('{"\\ud800":1}')
def test_a_line_that_python_refuses_is_malformed_and_no_other(line: str) -> None:
    try:
        is_object = isinstance(json.loads(line.removeprefix("\ufeff")), dict)
    except ValueError:
        is_object = False
    assert (texts(line) == [UNPARSABLE]) is not is_object


COLUMNS = ["Sensor", "note", "count"]


def csv_texts(*lines: str, delimiter: str = ",") -> list[dict[str, str | None]]:
    return texts(*lines, kind="csv", columns=COLUMNS, delimiter=delimiter)


WRONG_NUMBER = {"_malformed": "wrong_number_of_values"}


def test_the_values_of_a_csv_line_are_found_by_its_files_columns() -> None:
    lines = ["s,,1", 's,"a ""b"", c",1', 's,"",1', 's,a"b,1', 's,"a" ,1', "\ts ,b\x01,\x00"]

    assert csv_texts(*lines) == [
        {"sensor": "s", "count": "1"},
        {"sensor": "s", "count": "1", "note": 'a "b", c'},
        {"sensor": "s", "count": "1"},
        {"sensor": "s", "count": "1", "note": 'a"b'},
        {"sensor": "s", "count": "1", "note": "a"},
        {"sensor": "\ts ", "note": "b\x01", "count": "\x00"},
    ]
    assert csv_texts('s\t"a"\t1', delimiter="\t") == [{"sensor": "s", "count": "1", "note": "a"}]


@pytest.mark.parametrize("line", ["", "s", "s,b", "s,b,1,2", 's,"b,1', 's,"b"c,1', 's,"a" "b",1'])
def test_a_csv_line_with_another_number_of_values_is_malformed(line: str) -> None:
    assert csv_texts(line) == [WRONG_NUMBER]


def test_the_last_line_of_a_value_over_several_is_no_record() -> None:
    text = 's,1,"a\nt,b"\nu,c",2\nv,"d",3" \nw,e,5"x\nx,5" y 6",7'
    *ends, inch, inches = csv_texts(*text.split("\n"))

    assert ends == 4 * [WRONG_NUMBER]
    assert inch == {"sensor": "w", "note": "e", "count": '5"x'}
    assert inches == {"sensor": "x", "note": '5" y 6"', "count": "7"}


def test_n037_empty_values_behind_the_last_column_are_no_data() -> None:
    assert csv_texts("s,a,1,,", 's,a,1,""') == 2 * [{"sensor": "s", "note": "a", "count": "1"}]
    assert csv_texts("s,a,1,,2", "s,a,1,,,,", "," * 30_000) == 3 * [WRONG_NUMBER]


def test_a_csv_column_in_the_exact_spelling_is_taken_first_and_of_two_alike_the_first() -> None:
    named = {"kind": "csv", "fields": [field("note")]}

    assert texts("a,b", columns=["NOTE", "note"], **named) == [{"note": "b"}]  # type: ignore[arg-type]
    assert texts("a,b", columns=["note", "note"], **named) == [{"note": "a"}]  # type: ignore[arg-type]


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=6), min_size=1),
       st.sampled_from([",", ";", "\t", " ", "|"]), st.booleans())  # fmt: skip
def test_any_csv_line_is_read_as_it_was_written(
    values: list[str], delimiter: str, quoting: bool
) -> None:
    # Python's csv reads no NUL before 3.11.4 and treats it as text since.
    quoted = ['"' + v.replace('"', '""') + '"' if quoting or {*'"', delimiter} & {*v} else v
              for v in values]  # fmt: skip
    line = delimiter.join(quoted)

    assert [v or "" for v in values_of(line, delimiter)] == values
    (oracle,) = csv.reader([line], delimiter=delimiter, strict=True) if line else [[""]]
    assert oracle == values


def test_a_text_line_is_the_value_of_fields_spelled_text() -> None:
    fields = [field("whole", "Text"), field("other")]
    assert texts(' {"a" ', "", kind="text", fields=fields) == [{"whole": ' {"a" '}, {}]


def test_formats_and_columns_of_a_batch_may_be_mixed_and_a_batch_empty() -> None:
    cutter = Cutter([field("note")], ",")
    cut = cutter.cut(
        pa.chunked_array([["a,b", '{"note":1}'], ["a,b", None, "x"]], pa.string()),
        pa.chunked_array([["csv", "json"], ["csv", "text", None]], pa.string()),
        pa.chunked_array([['["note","x"]', None], ['["x","Note"]', None, None]], pa.string()),
    )

    assert [row["note"] for row in cut.to_pylist()] == ["a", "1", "b", None, None]
    assert len(cutter.cut(*[pa.array([], pa.string())] * 3)) == 0
