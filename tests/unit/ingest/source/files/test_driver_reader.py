"""Lines read without Spark, and what is left to it."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rivermark import FileSource
from rivermark.ingest.source.files import driver_reader
from rivermark.ingest.source.files.corrupt_files import decoding_fault
from rivermark.ingest.source.files.driver_reader import payloads_of, records_of
from rivermark.ingest.source.payload import JsonRecords
from rivermark.model.source import PlannedSplit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = FileSource(folder="f")


def file(path: Path, content: bytes, kind: str = "json") -> PlannedSplit:
    path.write_bytes(content)
    size = len(content)
    return PlannedSplit(
        batch=1,
        name=path.name,
        path=str(path),
        size=size,
        modified_at=NOW,
        landed_at=NOW,
        format=kind,
    )


def lines(one: PlannedSplit) -> list[str]:
    records = records_of([one], SOURCE)
    assert records is not None
    return [str(line) for line in pa.array(records[0], pa.string()).to_pylist()]


def test_a_line_ends_where_the_engine_ends_it(tmp_path: Path) -> None:
    text = "\ufeffa\r\n\nb\rc\u2028d\x0be\n".encode()

    assert lines(file(tmp_path / "a.json", text)) == ["a", "", "b", "c\u2028d\x0be"]


@pytest.mark.parametrize("text", ["", "a", "a\n", "\n", "\n\n", "a\nb", "a\n\nb\n", "é\n\u2028"])
def test_lines_of_line_feeds_alone_are_the_same(tmp_path: Path, text: str) -> None:
    ends = text.replace("\n", "\r\n")

    assert lines(file(tmp_path / "a.json", text.encode())) == lines(
        file(tmp_path / "b.json", ends.encode())
    )


def test_packed_files_of_several_members_are_read_to_their_end(tmp_path: Path) -> None:
    packed = file(tmp_path / "a.json.gz", gzip.compress(b"a\n") + gzip.compress(b"b"))

    assert lines(packed) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.json", b"\xff\n", "json"),
        ("a.json.gz", gzip.compress(b"a\n" * 99, mtime=0)[:-9], "json"),
        ("a.json.bz2", b"a\n", "json"),
        ("a.JSON.GZ", b"a\n", "json"),
        ("a:b.json", b"a\n", "json"),
    ],
)
def test_the_engine_reads_what_is_not_plain(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    good = file(tmp_path / "good.json", b"a\n")

    assert records_of([good, file(tmp_path / name, content, kind)], SOURCE) is None


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ISO-8859-1", "\u00e9\u0085"),
        ("cp1252", "€ ü"),
        ("Shift-JIS", "日本 ソ"),
        ("gb18030", "鷗 €"),
        ("koi8-r", "Привет"),
    ],
)
def test_n015_every_line_of_another_encoding_is_read_to_the_character(
    tmp_path: Path, encoding: str, text: str
) -> None:
    lines = ["1 2", "", "1 2 \x01 3", "\x01 4", text, "\x00", "  ", f'"{text}']
    for end in ("\n", "\r\n", "\r"):
        content = "".join(line + end for line in lines).encode(encoding)
        found = file(tmp_path / "a.txt", content, "csv")
        source = FileSource(folder="f", format="csv", encoding=encoding)
        assert records_of([found], source) == [lines]


def test_bytes_that_another_encoding_lacks_become_replacement_characters(tmp_path: Path) -> None:
    found = file(tmp_path / "a.json", b"a\x81\n")

    assert records_of([found], FileSource(folder="f", encoding="cp1252")) == [["a\ufffd"]]


def test_the_engine_reads_what_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [file(tmp_path / f"{n}.json", b"abc\n") for n in range(2)]

    monkeypatch.setattr("rivermark.ingest.source.files.driver_reader.MOST_BYTES", 7)
    assert records_of(files, SOURCE) is None


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_the_engine_reads_what_is_large_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    count = 20_000
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"note": ["the same"] * count}), path)
    else:
        schema = {"type": "record", "name": "R", "fields": [{"name": "note", "type": "string"}]}
        with path.open("wb") as out:
            fastavro.writer(out, schema, [{"note": "the same"}] * count, codec="deflate")
    packed = file(path, path.read_bytes(), kind)
    held: list[int] = []
    taken = driver_reader.binary_records

    def counted(*given: Any) -> Iterator[JsonRecords]:
        for part in taken(*given):
            held.append(len(part))
            yield part

    records = records_of([packed], SOURCE)
    assert records is not None
    assert len(records[0]) == count
    monkeypatch.setattr(driver_reader, "binary_records", counted)
    monkeypatch.setattr(driver_reader, "MOST_JSON_BYTES", 200_000)
    assert records_of([packed], SOURCE) is None
    assert sum(held) < count
    assert decoding_fault(payloads_of(packed, SOURCE, None)) is None


def test_a_file_that_went_away_is_left_to_the_engine(tmp_path: Path) -> None:
    gone = file(tmp_path / "a.json", b"a\n")
    Path(gone.path).unlink()

    assert records_of([gone], SOURCE) is None


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1"])
def test_executors_read_a_packed_text_as_the_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    draw = random.Random(13)
    pieces = [b"a", b"\r", b"\n", b"\r\n", b"\xc3\xbc", b"\xef\xbb\xbf", b"b c", b"\n\n"]
    source = FileSource(folder="f", encoding=encoding)
    for number in range(120):
        parts = [b"".join(draw.choices(pieces, k=draw.randint(0, 9))) for _ in range(3)]
        padding = bytes(draw.choice((0, 0, 1, 512)))
        packed = b"".join(gzip.compress(part) for part in parts) + padding
        one = file(tmp_path / f"{number}.{draw.choice(('json.gz', 'JSON.GZ', 'csv.Gz'))}", packed)
        monkeypatch.setattr(driver_reader, "PIECE_BYTES", draw.choice((3, 4, 7, 1_000)))

        records = records_of([one], source)
        assert records is not None
        lines = pa.concat_arrays([*payloads_of(one, source, None)])
        assert lines.to_pylist() == pa.array(records[0], pa.string()).to_pylist()


def test_packed_bytes_that_are_no_text_are_marked_and_damage_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(b"a\xff\xc3\nb")
    bad = file(tmp_path / "a.json.gz", packed)
    lines = pa.concat_arrays([*payloads_of(bad, SOURCE, None)])
    assert lines.to_pylist() == ["a\ufffd\ufffd", "b"]
    for content in (packed[:-9], packed + b"more", packed[:-8] + bytes(8)):
        damaged = file(tmp_path / "b.json.gz", content)
        assert decoding_fault(payloads_of(damaged, SOURCE, None)) is not None
