import gzip
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from rivermark.testing.landing import land

TABLE = pa.table({"id": [1, 2], "fare": pa.array([Decimal("12.50"), None], pa.decimal128(12, 2))})


def test_lines_land_with_their_ends(tmp_path: Path) -> None:
    landed = land(tmp_path / "new" / "a.json", ['{"a":1}', '{"a":2}'])

    assert landed.path.read_bytes() == b'{"a":1}\n{"a":2}\n'
    assert (landed.rows, landed.size) == (2, 16)
    assert land(tmp_path / "a.csv", []).size == 0


def test_gzipped_lines_land_compressed_and_equal_rows_make_equal_files(tmp_path: Path) -> None:
    first = land(tmp_path / "a.json.gz", ["{}"] * 1000)
    second = land(tmp_path / "b.json.gz", ["{}"] * 1000)

    assert gzip.decompress(first.path.read_bytes()) == b"{}\n" * 1000
    assert first.path.read_bytes() == second.path.read_bytes()


def test_a_table_lands_as_parquet_and_as_csv(tmp_path: Path) -> None:
    parquet = land(tmp_path / "a.parquet", TABLE)
    text = land(tmp_path / "a.csv.gz", TABLE)

    assert pyarrow.parquet.read_table(parquet.path).equals(TABLE)
    assert gzip.decompress(text.path.read_bytes()) == b'"id","fare"\n1,12.50\n2,\n'
    assert (parquet.rows, text.rows) == (2, 2)


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz", "a.orc"])
def test_lines_for_another_format_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        land(tmp_path / name, ["x"])
    assert list(tmp_path.iterdir()) == []


def test_a_table_for_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Arrow table"):
        land(tmp_path / "a.json", TABLE)


def test_nothing_is_visible_before_all_of_it_is_written(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        for number in range(3):
            yield str(number)
            assert [p for p in tmp_path.iterdir() if not p.name.startswith(".")] == []

    land(tmp_path / "a.json", lines())

    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "1"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        land(tmp_path / "a.json", lines())
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_has_landed_is_never_written_again(tmp_path: Path) -> None:
    land(tmp_path / "a.json", ["1"])

    with pytest.raises(FileExistsError, match="landed already"):
        land(tmp_path / "a.json", ["2"])
    assert (tmp_path / "a.json").read_text() == "1\n"
