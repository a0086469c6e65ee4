"""Whatever a file or its name does, at most that file is set aside: cases N003 to N014, N052."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rivermark.ingest.source.files.file_probe import FileProbe, probe_file
from rivermark.ingest.source.files.reader import FileReader
from rivermark.model.source import Discovery
from rivermark.sources import FileSource

ASKED = {"sensor", "at", "count", "note"}
LINE = b'{"Sensor":"s","AT":"2024-03-01T10:26:00Z","Note":"b"}\n'
Look = Callable[..., Discovery]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    landing = tmp_path / "landing" / "in"
    landing.mkdir(parents=True)
    return landing


@pytest.fixture
def look(folder: Path) -> Look:
    """What a reader that has just been opened discovers."""

    def discover(*, full: bool = True, pattern: str = "*.json") -> Discovery:
        source = FileSource(folder="in", pattern=pattern, settle=timedelta(0))
        return FileReader(str(folder.parent), source).discover(full=full)

    return discover


def put(folder: Path, name: str | bytes, content: bytes = LINE) -> None:
    path = os.path.join(os.fsencode(folder), os.fsencode(name))  # noqa: PTH118
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
    os.utime(path, (time() - 3600,) * 2)


def probe(tmp_path: Path, name: str, content: bytes, **options: Any) -> FileProbe:
    path = tmp_path / name
    path.write_bytes(content)
    source = FileSource(folder="in", **({"format": None} | options))
    return probe_file(fs.LocalFileSystem(), str(path), len(content), source, ASKED)


@pytest.mark.parametrize("break_", ["\u2028", "\x85", "\x0c", "\x0b", "\x1c", "\u2029"])
def test_n003_a_first_line_ends_where_the_readers_end_it(tmp_path: Path, break_: str) -> None:
    line = f'{{"sensor":"s","note":"a{break_}b"}}'
    header = f"sensor,at,no{break_}te"

    assert probe(tmp_path, "a.json", f"\ufeff{line}\r\n{{}}\n".encode()).columns == (
        None if break_ < " " else ("sensor", "note")
    )
    found = probe(tmp_path, "a.csv", f"{header}\rs,1,2\r".encode())
    assert (found.columns, found.head) == (tuple(header.split(",")), header)


@pytest.mark.parametrize(
    "first",
    [
        b"xx",
        b"[" * 5_000 + b"]" * 5_000,
        b'{"user_id":' + b"[" * 5_000,
        b'{"n":' + b"9" * 5_000 + b"}",
        b'{"note":"' + b"x" * (2 << 20) + b'"}',
        b'{"\\ud800":1}',
        b"\xff\xfe\x00",
        b'{"a":1}' * 9_999,
    ],
)
def test_n006_no_first_line_stops_a_probe(tmp_path: Path, first: bytes) -> None:
    for end in (b"\n", b"\r\n", b""):
        found = probe(tmp_path, "a.json", first + end + LINE)
        assert found.status == "ready"


def test_n007_a_wide_first_line_costs_its_file_alone(tmp_path: Path) -> None:
    for wide in ("a" * 140_000, '"' + "a" * 140_000 + '"', ",".join("a" * 140_000)):
        found = probe(tmp_path, "a.csv", f"sensor,at,{wide}\ns,1,2\n".encode())
        assert found.status == "rejected"
        assert str(found.reason).startswith("file_unusable_header: its first line has more than")
    found = probe(tmp_path, "a.csv", f"sensor,at,{'a' * 2_000}\ns,1,2\n".encode())
    assert found.reason == "file_unusable_header: a name has more than 1000 characters"
    assert probe(tmp_path, "a.csv", b"sensor," + b"x" * (2 << 20)).status == "rejected"


def test_n032_a_header_that_names_no_column_is_a_record(tmp_path: Path) -> None:
    found = probe(tmp_path, "a.csv", b"s,2024-03-01T10:03:00Z,1,n\ns,2024-03-01T10:04:00Z,2,n\n")

    assert (found.status, found.columns, found.head) == ("ready", (), None)


@pytest.mark.parametrize(
    ("line", "columns", "head"),
    [
        ("s,2024-03-01T10:03:00Z,1", ("sensor", "at", "count"), None),
        ("s,at,1,note", ("sensor", "at", "count"), "refused"),
        ("sensor,at,count", ("sensor", "at", "count"), "sensor,at,count"),
        ("At, Sensor,count", ("At", "Sensor", "count"), "At, Sensor,count"),
        ("at,sensor,count,note", ("at", "sensor", "count", "note"), "at,sensor,count,note"),
        ("at,count", ("sensor", "at", "count"), None),
        ("count,at", ("count", "at"), "count,at"),
        ("at,sensor,height", ("sensor", "at", "count"), "refused"),
        ("at,at,sensor", ("sensor", "at", "count"), "refused"),
    ],
)
def test_b037_a_header_decides_over_declared_columns_or_is_refused_with_both_lists(
    tmp_path: Path, line: str, columns: tuple[str, ...], head: str | None
) -> None:
    declared = ("sensor", "at", "count")
    found = probe(tmp_path, "a.csv", f"{line}\n1,2,3\n".encode(), columns=declared)

    if head == "refused":
        names = ", ".join(cell.strip() for cell in line.split(","))
        assert found.reason == (
            f"file_unusable_header: its first line names {names}; declared are sensor, at, count"
        )
    else:
        assert (found.status, found.columns, found.head) == ("ready", columns, head)


def test_n008_a_name_that_is_no_utf8_costs_its_file_alone(folder: Path, look: Look) -> None:
    put(folder, b"caf\xe9.json")
    put(folder, b"d\xe9p\xf4t/a.json")
    put(folder, "good.json")

    for full in (True, False):
        found = look(full=full)
        assert [(s.name, s.status, s.reason) for s in found.ready] == [
            (r"caf\xe9.json", "rejected", "file_name_not_utf8"),
            (r"d\xe9p\xf4t/a.json", "rejected", "file_name_not_utf8"),
            ("good.json", "ready", None),
        ]
        json.dumps([[s.name, s.path] for s in found.ready]).encode()


def test_n008_a_name_whose_escapes_are_the_name_of_another_file_keeps_that_one_not_out(
    folder: Path, look: Look
) -> None:
    put(folder, b"caf\xe9.json")
    put(folder, r"caf\xe9.json")

    for full in (True, False):
        found = look(full=full)
        assert [(s.name, s.status) for s in found.ready] == [(r"caf\xe9.json", "ready")]
        assert [Path(wait.path).name for wait in found.waiting] == [r"caf\xe9.json"]
        assert "that of another file" in found.waiting[0].reason


def test_n009_each_file_comes_once_whatever_links_lead_to_it(folder: Path, look: Look) -> None:
    outside = folder.parent.parent / "outside"
    for place, name in ((folder, "a.json"), (folder, "sub/b.json"), (outside, "deep/c.json")):
        put(place, name)
    put(folder, ".hidden/d.json")
    links = {
        "loop": folder,
        "up": folder.parent,
        "sub/again": folder / "sub",
        "sub2": folder / "sub",
        "twin.json": folder / "a.json",
        "shown.json": folder / ".hidden" / "d.json",
        "out": outside,
        "out2": outside / "deep",
        "gone.json": folder / "nowhere.json",
        "passwd.json": Path("/etc/passwd"),
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (outside / "back").symlink_to(folder)
    (outside / "deep" / "round").symlink_to(outside)

    for full in (True, False):
        found = look(full=full)
        names = ["a.json", "shown.json", "sub/b.json"]
        assert sorted(split.name for split in found.ready) == names
        assert [Path(wait.path).name for wait in found.waiting] == ["out", "out2", "passwd.json"]
        assert all("out of the landing folder is not followed" in w.reason for w in found.waiting)


def test_a_landing_folder_may_be_a_link_and_lead_to_its_neighbours(tmp_path: Path) -> None:
    disk, landing = tmp_path / "disk", tmp_path / "landing"
    put(disk, "a.json")
    put(landing / "shared", "b.json")
    (landing / "web").symlink_to(disk)
    (disk / "more").symlink_to(landing / "shared")

    source = FileSource(folder="web", pattern="*.json", settle=timedelta(0))
    ready = FileReader(str(landing), source).discover(full=True).ready
    assert [split.name for split in ready] == ["a.json", "more/b.json"]


def test_a_link_to_itself_and_a_pipe_stop_nothing(folder: Path, look: Look) -> None:
    (folder / "self.json").symlink_to(folder / "self.json")
    os.mkfifo(folder / "pipe.json")
    put(folder, "good.json")

    found = look()
    assert [split.name for split in found.ready] == ["good.json"]
    (closed,) = found.waiting
    assert closed.path == str(folder / "self.json")
    assert "cannot be read yet" in closed.reason


def test_a_folder_that_cannot_be_listed_keeps_no_other_out(
    folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "secret/a.json")
    put(folder, "good.json")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        # A test may run as root, whom no folder is closed to.
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = look()
    assert [split.name for split in found.ready] == ["good.json"]
    assert [w.path for w in found.waiting] == [str(folder / "secret")]


@pytest.mark.parametrize("moment", [-(2**62), -(2**31), 2**31, 2**62])
def test_any_modification_time_is_a_time(folder: Path, look: Look, moment: int) -> None:
    put(folder, "a.json")
    try:
        os.utime(folder / "a.json", ns=(0, moment))
    except OSError:
        pytest.skip("the disk has no such time")

    (split,) = look().ready + look().waiting
    assert 1 <= split.modified_at.year <= 9999


def test_n014_what_fits_no_pattern_is_found_by_a_full_look(folder: Path, look: Look) -> None:
    for name in ("a.json", "B.JSON", "c.jsonl", ".d.jsonl"):
        put(folder, name)

    assert [(w.name, w.reason) for w in look().ignored] == [
        ("B.JSON", "fits no pattern of *.json"),
        ("c.jsonl", "fits no pattern of *.json"),
    ]


def test_names_of_what_is_still_written_are_not_taken(folder: Path, look: Look) -> None:
    for name in (".a.json", "_a.json", "a.json._COPYING_", "b._COPYING_/a.json", "good.json"):
        put(folder, name)

    found = look(pattern="*")
    assert [split.name for split in found.ready] == ["good.json"]
    assert found.ignored == []


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["json", "csv", "text"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_n015_a_file_whose_mark_names_another_encoding_is_rejected(
    tmp_path: Path, encoding: str, kind: str, packed: bool
) -> None:
    content = f"\ufeff{LINE.decode()}".encode(encoding)
    name = "a.txt.gz" if packed else "a.txt"
    content = gzip.compress(content) if packed else content
    named = encoding.upper()[:6].rstrip("-")
    for declared in ("ISO-8859-1", "UTF-8"):
        found = probe(tmp_path, name, content, format=kind, encoding=declared)
        if named == declared:
            assert found.status == "ready"
        else:
            reason = f"file_other_encoding: its mark says {named}, its source {declared}"
            assert (found.status, found.reason) == ("rejected", reason)


@pytest.mark.parametrize("kind", ["json", "csv", "text"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_n015_a_file_in_another_encoding_without_a_mark_is_rejected(
    tmp_path: Path, encoding: str, kind: str
) -> None:
    for text in (
        LINE.decode() * 99,
        "sensor,at\ns,1",
        "Gr\u00f6\u00dfe\r\n",
        f"\ufeff{LINE.decode().strip()}",
    ):
        for declared in ("ISO-8859-1", "UTF-8"):
            content = text.encode(encoding)
            found = probe(tmp_path, "a.txt", content, format=kind, encoding=declared)
            reason = f"file_other_encoding: it looks like {encoding.upper()}, its source {declared}"
            assert (found.status, found.reason) == ("rejected", reason)


@pytest.mark.parametrize(
    "content", [b"\0" * 999, b"a\0\0b\n" * 99, LINE + b"\0" * 4_096, b"s\0\n", b"\0"]
)
def test_zeros_within_a_text_are_no_other_encoding(tmp_path: Path, content: bytes) -> None:
    assert probe(tmp_path, "a.json", content).status == "ready"


@pytest.mark.parametrize("kind", ["json", "csv", "text"])
def test_packed_bytes_that_are_no_text_cost_their_file_and_not_each_of_their_lines(
    tmp_path: Path, kind: str
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as pack:
        pack.writestr("a.json", LINE)
    zstandard = pa.Codec("zstd").compress(LINE, asbytes=True)
    for name, content, reason in (
        ("a.txt", gzip.compress(LINE), "it is gzip, and no text"),
        ("a.gz", gzip.compress(gzip.compress(LINE)), "in gzip it is gzip, and no text"),
        ("a.zip", archive.getvalue(), "it is zip, and no text"),
        ("a.xz", lzma.compress(LINE), "it is xz, and no text"),
        ("a.json.bz2", bz2.compress(LINE), "it is bzip2, and no text"),
        ("a.zst", zstandard, "it is zstandard, and no text"),
    ):
        found = probe(tmp_path, name, content, format=kind)
        assert (found.status, found.reason) == ("rejected", f"file_packed: {reason}")


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"sensor": ["s"] * 3, "at": [1, 2, 3], "größe": [1.0, None, 2.0]})
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def avro() -> bytes:
    schema = {"type": "record", "name": "R", "fields": [{"name": "sensor", "type": "string"}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"sensor": f"s{n}"} for n in range(99)], codec="deflate")
    return sink.getvalue()


@pytest.mark.parametrize(("name", "content"), [("a.parquet", parquet()), ("a.avro", avro())])
def test_n052_n053_a_damaged_file_is_rejected_or_read_and_never_waits(
    tmp_path: Path, name: str, content: bytes
) -> None:
    draw = random.Random(52)
    start = len(content) // 2 if name == "a.parquet" else 0
    rejected = 0
    for _ in range(2_000):
        damaged = bytearray(content)
        damaged[draw.randrange(start, len(content))] ^= 1 << draw.randrange(8)
        found = probe(tmp_path, name, bytes(damaged))
        assert found.status in ("ready", "rejected")
        if found.status == "rejected":
            rejected += 1
            assert str(found.reason).startswith("file_corrupt: ")
            str(found.reason).encode()
    assert rejected > 200


@pytest.mark.parametrize("name", ["a.parquet", "a.avro", "a.csv", "a.json.gz"])
def test_n052_a_fault_of_the_store_waits(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(parquet())

    class Failing:
        """A file whose reads fail as a store's do, without a number of the system."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def read(self, size: int) -> bytes:
            raise OSError("AWS Error NETWORK_CONNECTION")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    class Store:
        def open_input_file(self, path: str) -> Failing:
            return Failing(fs.LocalFileSystem().open_input_file(path))

    source = FileSource(folder="in", format=None)
    found = probe_file(Store(), str(path), path.stat().st_size, source, ASKED)
    assert (found.status, found.reason) == (
        "waiting",
        "cannot be read yet: AWS Error NETWORK_CONNECTION",
    )


def test_headers_are_cut_as_pythons_csv_cuts_them(tmp_path: Path) -> None:
    draw = random.Random(7)
    for _ in range(300):
        names = ["sensor", *("".join(draw.choices('ab ",;é', k=4)) for _ in range(3))]
        sink = io.StringIO()
        csv.writer(sink, lineterminator="\n").writerow(names)
        found = probe(tmp_path, "a.csv", sink.getvalue().encode())
        assert found.columns == tuple(name.strip() for name in names)


@pytest.mark.parametrize("name", ["a:b.json", ":.csv", "a:b.log", "a:b.json.gz"])
def test_a_text_whose_name_hadoop_cannot_open_is_rejected_before_it_fails_its_batch(
    tmp_path: Path, name: str
) -> None:
    found = probe(tmp_path, name, gzip.compress(LINE) if name.endswith(".gz") else LINE)
    assert (found.status, found.reason) == ("rejected", "file_name_with_colon")
