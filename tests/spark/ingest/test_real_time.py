"""Messages that Spark cuts itself, in real time, beside what admission makes of the same ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Contract, Field, Rule
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.real_time.rows import sound_rows
from rivermark.runtime.query.real_time import session_of
from tests.oracles.mutated_messages import SENT, Sent
from tests.spark.helpers.contract_problems import parsed_on_executors

AT: Final = datetime(2026, 1, 1, 10, tzinfo=UTC)
LARGEST: Final = 60_000
CONTRACT: Final = Contract(
    fields=(
        Field("id", "long", required=True, names=("number", "_header.id")),
        Field("at", "timestamp", required=True),
        Field("text", "string", nulls=("", "none")),
        Field("amount", "decimal(38,18)"),
        Field("ratio", "double"),
        Field("ok", "boolean"),
        Field("topic", "string", names=("_topic",)),
        Field("place", "long", names=("_offset",)),
        Field("sent", "timestamp", names=("_timestamp",)),
        Field("key", "string", names=("_key",)),
        Field("key_bytes", "string", names=("_key_bytes",)),
        Field("header", "string", names=("_header.h",)),
        Field("header_bytes", "string", names=("_header.h_bytes",)),
    ),
    event_time="at",
    rules=(
        Rule("negative", "amount < 0", "quarantine", "An amount is positive."),
        Rule("large", "amount > 1000", "flag", "Large amounts are looked at."),
    ),
    max_ahead=timedelta(days=1),
    max_row_bytes=LARGEST,
)


def reading(**members: Any) -> bytes:
    return json.dumps({"id": 1, "at": AT.isoformat(), **members}).encode()


def with_text(written: str) -> bytes:
    """A sound message whose member `text` is written so."""
    return f'{{"id":1,"at":"{AT.isoformat()}","text":{written}}}'.encode()


MESSAGES: Final = {
    "plain": Sent(reading(text="a", amount="1.5", ratio=0.25, ok=True), b"k", (("h", b"v"),)),
    "flagged": Sent(reading(amount=1000.5)),
    "broken rule": Sent(reading(amount="-1")),
    "tombstone": Sent(None, b"k"),
    "empty value": Sent(b"", b"k"),
    "empty object": Sent(b"{}"),
    "space": Sent(b"  "),
    "space around": Sent(b" \r\n" + reading(text="a") + b"\n"),
    "byte order mark": Sent(b"\xef\xbb\xbf" + reading()),
    "array": Sent(b"[" + reading() + b"]"),
    "number": Sent(b"1"),
    "word": Sent(b"null"),
    "text": Sent(b'"text"'),
    "cut off": Sent(reading()[:-1]),
    "cut in a name": Sent(reading()[:-9]),
    "more behind": Sent(reading() + b" x"),
    "two objects": Sent(reading() + reading()),
    "R02, a bracket and an object": Sent(reading() + b"] {}"),
    "R02, a bracket and a word": Sent(reading() + b"] trailing }"),
    "R02, a second list": Sent(reading() + b"],[" + reading()),
    "R02, an object and a bracket": Sent(reading() + b"," + reading() + b"]}"),
    "no JSON": Sent(b"id=1"),
    "single quotes": Sent(b"{'id':1,'at':'2026-01-01T10:00:00Z'}"),
    "bare names": Sent(b'{id:1,"at":"2026-01-01T10:00:00Z"}'),
    "comment": Sent(b"/* */" + reading()),
    "comma at the end": Sent(reading()[:-1] + b",}"),
    "value is no UTF-8": Sent(with_text('"a?"').replace(b"?", b"\xff")),
    "key is no UTF-8": Sent(reading(), b"\xff\x00k"),
    "empty key": Sent(reading(), b""),
    "M011: key is a number in binary": Sent(reading(), b"\0\0\0\x2a"),
    "member is called as the key": Sent(reading(_key="own"), b"\xffk"),
    "header is no UTF-8": Sent(reading(), None, (("h", b"\xff"),)),
    "headers of one name": Sent(reading(), None, (("h", b"1"), ("h", b"\xff"), ("h", b"2"))),
    "the last of a name is none": Sent(reading(**{"_header.h": "own"}), None, (("h", None),)),
    "header is called as bytes": Sent(reading(), None, (("h_bytes", b"v"),)),
    "another spelling": Sent(b'{"number":5,"at":"2026-01-01T10:00:00Z"}'),
    "number by a header": Sent(b'{"at":"2026-01-01T10:00:00Z"}', None, (("id", b"6"),)),
    "missing": Sent(b'{"id":1}'),
    "null": Sent(b'{"id":null,"at":"2026-01-01T10:00:00Z"}'),
    "no long": Sent(b'{"id":"one","at":"2026-01-01T10:00:00Z"}'),
    "a fraction": Sent(b'{"id":1.5,"at":"2026-01-01T10:00:00Z"}'),
    "more than a long": Sent(b'{"id":9223372036854775808,"at":"2026-01-01T10:00:00Z"}'),
    "the largest long": Sent(b'{"id":9223372036854775807,"at":"2026-01-01T10:00:00Z"}'),
    "no time": Sent(b'{"id":1,"at":"yesterday"}'),
    "an impossible time": Sent(b'{"id":1,"at":"0001-01-01T00:00:00+14:00"}'),
    "far ahead": Sent(b'{"id":1,"at":"9999-12-31T23:59:59Z"}'),
    "twice in an object": Sent(with_text('"a","text":"b"')),
    "null the second time": Sent(with_text('"a","text":null')),
    "word for no value": Sent(with_text('" none "')),
    "exact": Sent(reading(amount="12345678901234567890.123456789012345678")),
    "exact number": Sent(
        b'{"id":1,"at":"2026-01-01T10:00:00Z","amount":12345678901234567890.123456789012345678}'
    ),
    "not a number": Sent(b'{"id":1,"at":"2026-01-01T10:00:00Z","ratio":NaN}'),
    "too many digits": Sent(reading(amount="0.1234567890123456789")),
    "an unknown word": Sent(reading(ok="perhaps")),
    "too large": Sent(with_text(f'"{"x" * LARGEST}"')),
    "U+FFFD": Sent(with_text('"\ufffd"')),
    "half a character": Sent(with_text(r'"\ud83d"')),
    "the second half": Sent(with_text(r'"a\ude00"')),
    "both halves": Sent(with_text(r'"\ud83d\ude00"')),
    "the word of a half": Sent(with_text(r'"\\ud83d"')),
    "control character": Sent(with_text('"a\tb"')),
    "zero": Sent(with_text(r'"a\u0000b"')),
    "text of a number": Sent(with_text("1.10")),
    "text of an exponent": Sent(with_text("1e3")),
    "text of a long number": Sent(with_text("0.1000000000000000055511151231257827")),
    "text of a boolean": Sent(with_text("true")),
    "numbers in texts": Sent(with_text(r'"1, 2.50, \" 3, \\"').replace(b'"id":1', b'"id": 1 ')),
    "a number after infinity": Sent(with_text("1.10").replace(b"{", b'{"x":-Infinity,')),
    "leading zero": Sent(reading().replace(b"1,", b"01,", 1)),
    "no digit behind the point": Sent(reading().replace(b"1,", b"1.,", 1)),
    "number for a name": Sent(reading().replace(b'"id"', b"1")),
    "exponent": Sent(reading(amount=1).replace(b'"amount": 1', b'"amount": 1.5E-2')),
    "beyond doubles": Sent(reading(ratio=1).replace(b'"ratio": 1', b'"ratio": 1e400')),
    "deep": Sent(with_text("[" * 400 + "]" * 400)),
    "R02, as deep as a line may be": Sent(with_text("[" * 499 + "]" * 499)),
    "R02, a level deeper": Sent(with_text("[" * 500 + "]" * 500)),
    "R02, 900 levels": Sent(with_text("[" * 900 + "]" * 900)),
    "R02, NaN": Sent(with_text("NaN")),
    "R02, -Infinity": Sent(with_text("-Infinity")),
    "R02, -INF": Sent(with_text("-INF")),
    "R02, a backslash before half": Sent(with_text(r'"\\\ud83d"')),
    "R02, the word of a half before the other": Sent(with_text(r'"\\ud83d\ude00"')),
    "R02, half in a member of no field": Sent(reading(more=1).replace(b": 1}", b': "\\ud83d"}')),
    "R02, key is U+FFFD": Sent(reading(), "\ufffd".encode()),
    "R02, header is U+FFFD": Sent(reading(), None, (("x", "\ufffd".encode()),)),
    "R02, a name of 50,001 characters": Sent(reading(**{"x" * 50_001: 1})),
    "too large with its key": Sent(with_text(f'"{"x" * (LARGEST - 200)}"'), b"k" * 200),
    "R02, another letter case": Sent(reading(text="a").replace(b"text", b"Text")),
    "R02, both letter cases": Sent(with_text('"a","TEXT":"b"')),
    "R02, a name with an escape": Sent(reading(text="a").replace(b"text", b"t\\u0065xt")),
    "R02, a header in another letter case": Sent(reading(), None, (("H", b"v"),)),
    "list": Sent(with_text('["a",  "b", 1.50]')),
    "object": Sent(with_text('{"b" : "\\u00e4\\ud83d", "a":null}')),
}
COLUMNS: Final = [field.name for field in CONTRACT.fields]


@pytest.fixture(scope="module")
def admitted(spark: SparkSession) -> dict[str, tuple[Any, ...]]:
    """What admission makes of the sound ones, by name."""
    pytest.importorskip("confluent_kafka", reason="needs the extra: pip install 'rivermark[kafka]'")
    from rivermark.ingest.source.kafka.messages import payload_of

    now = datetime.now(UTC)
    payloads = [
        (name, payload_of(cast(Any, sent), "json")[0], "json", None, None, now, "t")
        for name, sent in MESSAGES.items()
    ]
    raw = spark.createDataFrame(
        payloads,
        "name string, payload string, _format string, _columns string, _head string, "
        "_landed_at timestamp, _file string",
    )
    parsed = parsed_on_executors(ContractParser(CONTRACT, ","), raw)
    return rows_of(parsed.where((F.col("payload") != "") & (F.size(PROBLEMS) == 0)), "name")


@pytest.fixture(scope="module")
def sent_on(spark: SparkSession) -> dict[str, tuple[Any, ...]]:
    """What is left of them in real time, by name."""
    names = [*MESSAGES]
    rows = rows_of(sound_rows(frame_of(spark, MESSAGES.values()), CONTRACT), "place")
    place = COLUMNS.index("place")
    return {names[number]: (*row[:place], 77, *row[place + 1 :]) for number, row in rows.items()}


def frame_of(spark: SparkSession, messages: Iterable[Sent]) -> DataFrame:
    """Messages as Spark's source has them, numbered by their offsets."""
    return spark.createDataFrame(
        [
            (sent.named, sent.content, "t", 3, number, SENT, [*sent.headed] or None)
            for number, sent in enumerate(messages)
        ],
        "key binary, value binary, topic string, partition int, offset long, "
        "timestamp timestamp, headers array<struct<key string, value binary>>",
    )


def rows_of(frame: DataFrame, by: str) -> dict[Any, tuple[Any, ...]]:
    """The columns of each row, and its flags; NaN by its name, which equals itself."""
    return {
        row[by]: (*(repr(v) if isinstance(v, float) else v for v in row[1:-1]), row[-1])
        for row in frame.select(by, *COLUMNS, "flags").collect()
    }


def test_each_batch_runs_the_code_that_is_compiled_already(spark: SparkSession) -> None:
    rows = sound_rows(frame_of(spark, [Sent(reading())]), CONTRACT)

    def code() -> str:
        """The code that is generated when the query is planned again."""
        planned: Any = rows.select(*rows.columns)
        text = spark._jvm.PythonSQLUtils.explainString(  # type: ignore[union-attr]
            planned._jdf.queryExecution(), "codegen"
        )
        return re.sub(r"#\d+L?", "", str(text))

    assert "public Object generate" in code()
    assert code() == code()


def test_r02_a_join_of_messages_is_planned_without_writing_out_all_that_its_key_is_made_of(
    spark: SparkSession,
) -> None:
    session = session_of(spark)
    rows = sound_rows(frame_of(session, [Sent(reading())]), CONTRACT)
    limits = session.range(3).withColumnRenamed("id", "limit")
    # Where Spark looks for partitions to prune, this does not end.
    joined: Any = rows.join(F.broadcast(limits), F.floor("amount") == F.col("limit"))

    plan = str(joined._jdf.queryExecution().optimizedPlan())

    assert "Join" in plan
    assert plan.count("from_json") <= 4


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_makes_the_row_that_admission_makes_of_it_or_none(
    name: str, admitted: dict[str, tuple[Any, ...]], sent_on: dict[str, tuple[Any, ...]]
) -> None:
    assert sent_on.get(name) == admitted.get(name)
