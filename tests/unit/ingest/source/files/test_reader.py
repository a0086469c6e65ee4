"""Which landed files are taken, when, in which order, and what is said of the others."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import fs
from pyspark.sql.types import LongType, TimestampType

from rivermark.ingest.plan import BatchPlanner, planned_split
from rivermark.ingest.source.files.file_probe import FileProbe, probe_file
from rivermark.ingest.source.files.listing import LandedFiles, scanned
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.lake import Lake
from rivermark.model.contract import Contract, Field
from rivermark.model.errors import TableDamaged
from rivermark.model.stream import Ingest
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.oracles.shop import append

LINE = b'{"id":1,"at":"2024-03-01T10:00:00Z"}\n'
HOUR_AGO = 3600.0
Put = Callable[..., Path]
Open = Callable[..., BatchPlanner]


def ingest(**source: Any) -> Ingest:
    declared = {"folder": "rides", "format": None, "pattern": "*", "settle": timedelta(seconds=1)}
    return Ingest(
        name="test/rides",
        source=FileSource(**(declared | source)),
        contract=Contract(
            fields=(
                Field("id", LongType(), required=True),
                Field("at", TimestampType(), required=True),
            ),
            event_time="at",
        ),
        lateness=timedelta(minutes=1),
        description="Rides.",
        group="test",
    )


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: bytes = LINE, age: float = HOUR_AGO) -> Path:
        path = tmp_path / "landing" / "rides" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (time() - age,) * 2)
        return path

    return write


@pytest.fixture
def planner(tmp_path: Path) -> Open:
    """A planner as a new run opens it."""

    def opened(**source: Any) -> BatchPlanner:
        return BatchPlanner(lake(tmp_path), str(tmp_path / "landing"), ingest(**source), "run")

    return opened


def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def arrivals(tmp_path: Path) -> list[dict[str, Any]]:
    table = DeltaTable(lake(tmp_path).path("ops/arrivals/test/rides")).to_pyarrow_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda r: (r["arrival"], r["modified_at"], r["path"]))


def names(tmp_path: Path) -> list[str]:
    return [row["name"] for row in arrivals(tmp_path)]


def parquet(rows: int = 3) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [*range(rows)]}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def test_files_come_in_the_order_of_their_times_then_of_their_paths(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    now = time()
    for name, age in (("c.json", 30), ("a.json", 10), ("b.json", 20)):
        put(name, age=age)
    for name in ("z/e.json", "d.json"):
        os.utime(put(name), (now - 5, now - 5))

    assert planner().poll().planned == 5
    assert names(tmp_path) == ["c.json", "b.json", "a.json", "d.json", "z/e.json"]


def test_times_that_differ_by_less_than_a_microsecond_are_one(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    second = 1_700_000_000_000_000_000
    os.utime(put("b.json"), ns=(second + 1, second + 1))
    os.utime(put("a.json"), ns=(second + 999, second + 999))

    planner(max_files=1).poll()
    assert names(tmp_path) == ["a.json", "b.json"]


@pytest.mark.parametrize("archive", [None, "done"])
def test_planned_files_are_read_where_the_landing_folder_lies_now(
    put: Put, planner: Open, tmp_path: Path, archive: str | None
) -> None:
    put("a ü.json", LINE)
    planner(archive=archive).poll()
    (tmp_path / "landing").rename(tmp_path / "moved")
    options = FileSource(folder="rides", pattern="*", archive=archive)
    source = options.open(str(tmp_path / "moved"))
    splits = [planned_split(row) for row in arrivals(tmp_path)]

    [piece] = source.pieces(None, splits, 99)  # type: ignore[arg-type]
    [records] = source.read(piece)
    source.committed(splits)

    assert records.rows["payload"].to_pylist() == [LINE.decode().rstrip()]
    assert (tmp_path / "moved" / "done" / "a ü.json").exists() == (archive is not None)


def test_hidden_names_are_never_taken(put: Put, planner: Open, tmp_path: Path) -> None:
    for name in (".a.json", "_b.json", ".tmp/c.json", "x/_d/e.json", "f.json"):
        put(name)

    assert planner().poll().planned == 1
    assert names(tmp_path) == ["f.json"]


def test_only_names_that_fit_one_of_the_patterns_are_taken(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    for name in ("a.json", "a.json.gz", "a.JSON", "b.csv", "deep/down/c.csv"):
        put(name, gzip.compress(LINE) if name.endswith(".gz") else LINE)

    planner(pattern="*.json, *.csv").poll()
    assert sorted(names(tmp_path)) == ["a.json", "b.csv", "deep/down/c.csv"]


def test_at_most_max_files_make_an_arrival(put: Put, planner: Open, tmp_path: Path) -> None:
    for n in range(5):
        put(f"{n}.json", age=100 - n)

    planner(max_files=2).poll()
    assert [r["arrival"] for r in arrivals(tmp_path)] == [0, 0, 1, 1, 2]


def test_an_arrival_ends_when_its_bytes_pass_the_bound_and_a_packed_file_weighs_eightfold(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    packed = gzip.compress(LINE)
    for n, name in enumerate(("a.json", "b.json", "c.json.gz", "d.json", "e.json")):
        put(name, packed if name.endswith(".gz") else LINE, age=100 - n)

    planner(max_bytes=2 * len(LINE)).poll()
    assert [r["arrival"] for r in arrivals(tmp_path)] == [0, 0, 1, 2, 2]


def test_what_a_running_query_cannot_take_soon_is_held_and_comes_in_order(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    for n in range(5):
        put(f"{n}.json", age=100 - n)
    opened = planner(max_files=2)

    first = opened.poll(most=1, full=False)
    assert (first.planned, first.held) == (2, 3)
    assert opened.poll(most=0, full=False).held == 3
    last = opened.poll(most=2, full=False)
    assert (last.planned, last.held) == (3, 0)
    assert names(tmp_path) == [f"{n}.json" for n in range(5)]


def test_a_quick_look_finds_what_a_full_one_does(put: Put, planner: Open) -> None:
    for name in (".a.json", "_b/c.json", "x/.y/d.json", "x/y/e.json", "f.json", "g.xml"):
        put(name)

    assert planner(pattern="*.json").poll(full=False).planned == 2
    assert planner(pattern="*.json").poll().planned == 0
    assert planner(folder="nowhere").poll(full=False).planned == 0


def test_a_file_that_changed_a_moment_ago_waits(put: Put, planner: Open) -> None:
    put("a.json", age=0)
    found = planner().poll()

    assert found.planned == 0
    assert [w.reason for w in found.waiting] == ["changed a moment ago"]


def test_a_file_dated_in_the_future_is_taken_once_it_was_watched_for_long_enough(
    put: Put, planner: Open
) -> None:
    put("a.json", age=-HOUR_AGO)
    watching = planner(settle=timedelta(0))

    assert watching.poll().planned == 1


def test_an_unterminated_last_line_waits_and_is_taken_when_nobody_goes_on(
    put: Put, planner: Open
) -> None:
    put("a.json", LINE + LINE[:9], age=5)
    waits = planner().poll()
    assert (waits.planned, [w.reason for w in waits.waiting]) == (
        0,
        ["looks unfinished: no line end"],
    )

    put("a.json", LINE + LINE[:9], age=25)
    assert planner().poll().planned == 1


@pytest.fixture
def read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read to their end."""
    names: list[str] = []

    def counted(probe: FileProbe, store: fs.FileSystem, path: str) -> FileProbe:
        names.append(Path(path).name)
        return scanned(probe, store, path)

    monkeypatch.setattr("rivermark.ingest.source.files.listing.scanned", counted)
    return names


def test_a_file_that_waits_is_not_read_to_its_end_at_every_poll(
    put: Put, planner: Open, read_to_the_end: list[str]
) -> None:
    put("a.json", LINE[:9], age=5)
    planner().poll()
    assert read_to_the_end == []

    put("a.json", LINE, age=5)
    planner().poll()
    assert read_to_the_end == ["a.json"]


def test_files_that_are_held_are_read_to_their_end_once(
    put: Put, planner: Open, tmp_path: Path, read_to_the_end: list[str]
) -> None:
    for n, name in enumerate("abc"):
        put(f"{name}.json", age=100 - n)
    opened = planner(max_files=1)
    assert [opened.poll(most=1).held for _ in range(2)] == [2, 1]
    assert read_to_the_end == ["a.json", "b.json", "c.json"]

    put("c.json", LINE * 2, age=50)
    opened.poll()
    assert read_to_the_end == ["a.json", "b.json", "c.json", "c.json"]
    sizes = {row["name"]: row["size"] for row in arrivals(tmp_path)}
    assert sizes["c.json"] == 2 * len(LINE)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"", "file_empty"),
        ("a.parquet", b"", "file_empty"),
        ("a.json.gz", gzip.compress(LINE * 99, mtime=0)[:-9], "file_corrupt"),
        ("a.json.gz", b"no gzip at all", "file_corrupt"),
        ("a.parquet", parquet()[:-20], "file_corrupt"),
        ("a.parquet", b"PAR1", "file_corrupt"),
    ],
)
def test_a_file_without_an_end_waits_first_and_is_then_set_aside_with_the_reason(
    name: str,
    content: bytes,
    reason: str,
    put: Put,
    planner: Open,
    tmp_path: Path,
) -> None:
    put(name, content, age=5)
    early = planner().poll()
    assert early.planned == 0
    assert early.waiting[0].reason.startswith(f"looks unfinished: {reason}")

    put(name, content)
    assert planner().poll().planned == 1
    (row,) = arrivals(tmp_path)
    assert row["status"] == "rejected"
    assert row["reason"].startswith(reason)


def test_an_ending_that_says_nothing_is_set_aside(put: Put, planner: Open, tmp_path: Path) -> None:
    put("a.xml")
    planner().poll()

    (row,) = arrivals(tmp_path)
    assert (row["status"], row["reason"]) == ("rejected", "file_unknown_format")


def test_a_file_that_cannot_be_read_waits_and_the_others_do_not(
    put: Put, planner: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put("a.json")
    put("b.json")
    opened = planner()
    with monkeypatch.context() as patch:
        forbid(patch, "a.json")
        found = opened.poll()
        assert found.planned == 1
        assert [w.reason for w in found.waiting] == ["cannot be read yet: PermissionError"]
        assert opened.poll().planned == 0

    assert opened.poll().planned == 1
    assert names(tmp_path) == ["b.json", "a.json"]


def forbid(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let opening that file fail as it does without permission; a test may run as root."""

    def refusing(files: fs.FileSystem, *rest: Any) -> FileProbe:
        return probe_file(Refusing(files, name), *rest)

    patch.setattr("rivermark.ingest.source.files.listing.probe_file", refusing)


class Refusing:
    """A file system that opens all files but one."""

    def __init__(self, files: fs.FileSystem, name: str) -> None:
        self._files, self._name = files, name

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path.endswith(self._name):
            raise PermissionError(13, "Permission denied", path)
        return self._files.open_input_file(path)


def test_a_folder_that_cannot_be_listed_waits(
    put: Put, planner: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a.json")
    opened = planner()

    def fail(_: LandedFiles) -> list[fs.FileInfo]:
        raise OSError("the network is away")

    with monkeypatch.context() as patch:
        patch.setattr(LandedFiles, "all", fail)
        found = opened.poll()
    assert [w.reason for w in found.waiting] == ["cannot be read yet: the network is away"]
    assert opened.poll().planned == 1


def test_a_restart_knows_the_files_also_when_the_root_is_mounted_elsewhere(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    put("a.json", age=50)
    planner().poll()
    assert planner().poll().planned == 0

    (tmp_path / "landing").rename(tmp_path / "moved")
    moved = BatchPlanner(lake(tmp_path), str(tmp_path / "moved"), ingest(), "run")
    assert moved.poll().planned == 0
    (tmp_path / "moved" / "rides" / "b.json").write_bytes(LINE)
    os.utime(tmp_path / "moved" / "rides" / "b.json", (1, 1))
    assert moved.poll().planned == 1
    assert [r["arrival"] for r in arrivals(tmp_path)] == [0, 1]


def test_a_file_that_grew_after_it_was_taken_is_told_and_not_read_again(
    put: Put, planner: Open
) -> None:
    path = put("a.json")
    opened = planner()
    opened.poll()
    put("a.json", LINE * 3)

    for each in (opened, planner()):
        found = each.poll()
        assert (found.planned, found.waiting) == (0, [])
        assert [c.path for c in found.changed] == [str(path)]
        assert found.changed[0].reason == "had 37 bytes when it was read and has 111 now"


def test_a_file_that_was_read_again_is_known_as_it_was_then(
    put: Put, planner: Open, tmp_path: Path
) -> None:
    for name in ("a.json", "b.json"):
        put(name)
    planner().poll()
    for name in ("a.json", "b.json"):
        put(name, LINE * 3)
    again = {"stream": "test/rides", "file": "a.json", "size": 3 * len(LINE), "replaced": 1}
    append(Settings(home=tmp_path), INGEST_FILES, [again])

    assert [c.name for c in planner().poll().changed] == ["b.json"]


@pytest.mark.parametrize("table", ["ops/arrivals/test/rides", INGEST_FILES.name])
def test_a_damaged_file_of_what_was_planned_or_read_is_named(
    table: str, put: Put, planner: Open, tmp_path: Path
) -> None:
    put("a.json")
    planner().poll()
    append(Settings(home=tmp_path), INGEST_FILES, [{"stream": "test/rides", "replaced": 1}])
    [file] = Path(lake(tmp_path).path(table)).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:8])

    with pytest.raises(TableDamaged, match=f"table '{table}': .*{file.name} cannot be read"):
        planner()


def test_the_first_line_tells_the_columns(put: Put, planner: Open, tmp_path: Path) -> None:
    put("1.csv", b"\xef\xbb\xbfid, At \r\n1,2024-03-01T10:00:00Z\r\n", age=9)
    put("2.json", b"\n" + LINE, age=8)
    put("3.json", b"[1]\n", age=7)
    put("4.parquet", parquet(), age=6)
    put("5.json.gz", gzip.compress(LINE), age=5)

    planner().poll()
    assert [(r["columns"], r["head"]) for r in arrivals(tmp_path)] == [
        ('["id", "At"]', "id, At "),
        ('["id", "at"]', None),
        (None, None),
        ('["id"]', None),
        ('["id", "at"]', None),
    ]
