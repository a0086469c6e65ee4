"""Landed files in pieces: the lines and records of each, whatever its size, name and encoding."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rivermark.ingest.lines import read_numbered
from rivermark.ingest.source.files import pieces as module
from rivermark.ingest.source.files.corrupt_files import decoding_fault
from rivermark.ingest.source.files.pieces import TextPiece, pieces_of
from rivermark.model.source import PlannedSplit
from rivermark.sources import FileSource

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


def lines(one: PlannedSplit, source: FileSource = SOURCE, most: int = 1 << 20) -> list[str]:
    pieces = pieces_of(one, source, None, most)
    records = read_numbered(pieces, lambda piece: piece.read())
    found = [(row["_row"], row["payload"]) for each in records for row in each.rows.to_pylist()]
    assert [row for row, _ in found] == [*range(1, len(found) + 1)]
    texts = [payload for _, payload in found]
    if all(isinstance(piece, TextPiece) for piece in pieces):
        assert sum(piece.count() for piece in pieces) == len(texts)
    return texts


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


@pytest.mark.parametrize("name", ["x.snappy", "x.lz4", "x.deflate", "x.zst", "x.bz2", "a:b.json"])
def test_r03_a_text_is_read_as_text_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert lines(file(tmp_path / name, b"a\nb\n")) == ["a", "b"]


def test_bytes_that_are_no_text_become_replacement_characters(tmp_path: Path) -> None:
    assert lines(file(tmp_path / "a.json", b"a\xff\xc3\n\xe2\x82\n")) == ["a\ufffd\ufffd", "\ufffd"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\r\n\r"])
@pytest.mark.parametrize("most", [1, 3, 10, 1_000])
def test_a_text_is_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes, most: int
) -> None:
    text = b"\xef\xbb\xbf" + end.join(b"x" * (n % 7) for n in range(50))
    one = file(tmp_path / "a.json", text)
    whole = lines(one)
    assert len(whole) >= 49
    monkeypatch.setattr(module, "CHUNK_BYTES", max(most, 3))

    assert lines(one, most=most) == whole
    pieces = pieces_of(one, SOURCE, None, most)
    assert sum(piece.weight for piece in pieces) == len(text)
    assert len(pieces) > 1 or b"\n" not in end or most == 1_000


def test_a_text_without_a_line_feed_is_one_piece(tmp_path: Path) -> None:
    assert len(pieces_of(file(tmp_path / "a.json", b"a\rb\rc" * 99), SOURCE, None, 10)) == 1


@pytest.mark.parametrize("kind", ["parquet", "avro"])
@pytest.mark.parametrize("most", [1, 20_000, 1 << 40])
def test_binary_records_are_the_same_in_pieces_of_any_size(
    tmp_path: Path, kind: str, most: int
) -> None:
    notes = [f"note {n}" for n in range(5_000)]
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"note": notes}), path, row_group_size=700)
    else:
        schema = {"type": "record", "name": "R", "fields": [{"name": "note", "type": "string"}]}
        records = [{"note": note} for note in notes]
        with path.open("wb") as out:
            fastavro.writer(out, schema, records, codec="deflate", sync_interval=4_000)
    one = file(path, path.read_bytes(), kind)

    assert lines(one, most=most) == [f'{{"note":"{note}"}}' for note in notes] or (
        kind == "avro" and [json.loads(text)["note"] for text in lines(one, most=most)] == notes
    )
    pieces = pieces_of(one, SOURCE, None, most)
    assert (len(pieces) == 1) == (most == 1 << 40)
    assert [each.first for each in pieces] == sorted(each.first or 0 for each in pieces)


def test_what_cannot_be_cut_is_one_piece_that_names_its_fault(tmp_path: Path) -> None:
    for kind in ("parquet", "avro"):
        [piece] = pieces_of(file(tmp_path / f"a.{kind}", b"no such bytes", kind), SOURCE, None, 1)
        assert decoding_fault([piece]) is not None


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
    rows = ["1 2", "", "1 2 \x01 3", "\x01 4", text, "\x00", "  ", f'"{text}']
    for end in ("\n", "\r\n", "\r"):
        content = "".join(line + end for line in rows).encode(encoding)
        found = file(tmp_path / "a.txt", content, "csv")
        source = FileSource(folder="f", format="csv", encoding=encoding)
        assert lines(found, source) == rows


def test_bytes_that_another_encoding_lacks_become_replacement_characters(tmp_path: Path) -> None:
    found = file(tmp_path / "a.json", b"a\x81\n")

    assert lines(found, FileSource(folder="f", encoding="cp1252")) == ["a\ufffd"]


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1"])
def test_a_packed_text_has_the_lines_of_the_plain_one(
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
        plain = file(tmp_path / f"{number}.json", b"".join(parts))
        monkeypatch.setattr(module, "CHUNK_BYTES", draw.choice((3, 4, 7, 1_000)))

        assert lines(one, source) == lines(plain, source)


def test_packed_bytes_that_are_no_text_are_marked_and_damage_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(b"a\xff\xc3\nb")
    bad = file(tmp_path / "a.json.gz", packed)
    assert lines(bad) == ["a\ufffd\ufffd", "b"]
    for content in (packed[:-9], packed + b"more", packed[:-8] + bytes(8)):
        damaged = file(tmp_path / "b.json.gz", content)
        assert decoding_fault(pieces_of(damaged, SOURCE, None, 99)) is not None
