"""The checksum beside each commit says what the table's state says, or is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.append.version_checksum import checksum_of, write_checksum


def append(path: str, rows: int, mode: Any = "append") -> int:
    """Commit some rows by delta-rs; gives the version."""
    write_deltalake(path, pa.table({"n": list(range(rows))}), mode=mode)
    return DeltaTable(path).version()


def checksum(path: str, version: int) -> dict[str, Any]:
    """The checksum file of a version."""
    found: dict[str, Any] = json.loads(Path(path, "_delta_log", f"{version:020d}.crc").read_text())
    return found


def state(path: str) -> tuple[int, int]:
    """Files and bytes of the newest version, by delta-rs."""
    sizes = pa.table(DeltaTable(path).get_add_actions())["size_bytes"].to_pylist()
    return len(sizes), sum(sizes)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_each_commit_is_summed_up_from_the_one_before(tmp_path: Path, mode: str) -> None:
    path = str(tmp_path)
    for rows in (3, 10, 500):
        version = append(path, rows, mode)
        assert write_checksum(path, version)
        found = checksum(path, version)
        assert (found["numFiles"], found["tableSizeBytes"]) == state(path)


def test_a_gap_is_bridged_by_the_table_s_state(tmp_path: Path) -> None:
    path = str(tmp_path)
    append(path, 3)
    append(path, 4)
    DeltaTable(path).optimize.compact()
    version = append(path, 5)

    assert write_checksum(path, version)

    found = checksum(path, version)
    assert (found["numFiles"], found["tableSizeBytes"]) == state(path) == (2, state(path)[1])


def test_the_metadata_is_the_log_s_own_and_follows_changes(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_checksum(path, append(path, 3))
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.checkpointInterval": "7"})

    write_checksum(path, table.version())

    found = checksum(path, table.version())
    assert found["metadata"]["configuration"] == {"delta.checkpointInterval": "7"}
    assert found["metadata"]["id"] == str(table.metadata().id)
    assert found["protocol"]["minWriterVersion"] == table.protocol().min_writer_version


def test_none_is_written_where_the_log_does_not_say_the_metadata(tmp_path: Path) -> None:
    path = str(tmp_path)
    version = append(path, 3)
    DeltaTable(path).create_checkpoint()
    version = append(path, 3)
    Path(path, "_delta_log", f"{0:020d}.json").unlink()

    assert not write_checksum(path, version)
    assert not list(tmp_path.glob("_delta_log/*.crc"))


def test_a_checksum_without_a_protocol_is_no_answer(tmp_path: Path) -> None:
    path = str(tmp_path)
    version = append(path, 3)
    write_checksum(path, version)
    whole = checksum(path, version)
    del whole["rivermark"]
    for lacking in ({**whole, "protocol": None}, {k: whole[k] for k in whole if k != "protocol"}):
        (tmp_path / "_delta_log" / f"{version:020d}.crc").write_text(json.dumps(lacking))
        assert checksum_of(path, version) == whole


def test_what_spark_wrote_stays(tmp_path: Path) -> None:
    path = str(tmp_path)
    version = append(path, 3)
    theirs = tmp_path / "_delta_log" / f"{version:020d}.crc"
    sums = checksum_of(path, version)
    text = json.dumps({"txnId": "1", **(sums or {})})
    theirs.write_text(text)

    assert write_checksum(path, version)
    assert theirs.read_text() == text


@pytest.mark.parametrize("text", ["", "{}", '{"numFiles": 3', "no JSON"])
def test_a_damaged_checksum_is_made_anew(tmp_path: Path, text: str) -> None:
    path = str(tmp_path)
    version = append(path, 3)
    write_checksum(path, version)
    file = tmp_path / "_delta_log" / f"{version:020d}.crc"
    whole = file.read_text()
    file.write_text(text)

    assert write_checksum(path, version)
    assert file.read_text() == whole


def test_a_flipped_digit_in_a_checksum_is_not_carried_on(tmp_path: Path) -> None:
    path = str(tmp_path)
    version = append(path, 3)
    write_checksum(path, version)
    file = tmp_path / "_delta_log" / f"{version:020d}.crc"
    file.write_text(file.read_text().replace('"numFiles":1', '"numFiles":9'))

    assert '"numFiles":9' in file.read_text()
    assert (checksum_of(path, version) or {})["numFiles"] == 1


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"partitionColumns":[]', '"partitionColumns":["n"]'),
        ('\\"name\\":\\"n\\"', '\\"name\\":\\"m\\"'),
        ('"configuration":{}', '"configuration":{"delta.appendOnly":"true"}'),
    ],
)
def test_metadata_of_an_entry_that_a_table_checkpoint_stands_for_is_taken_from_no_changed_one(
    tmp_path: Path, was: str, now: str
) -> None:
    path = str(tmp_path)
    append(path, 3)
    append(path, 4)
    DeltaTable(path).create_checkpoint()
    first = Path(path, "_delta_log", f"{0:020d}.json")
    changed = first.read_text().replace(was, now)
    assert changed != first.read_text()
    first.write_text(changed)

    assert not write_checksum(path, append(path, 5))
    assert DeltaTable(path).metadata().partition_columns == []
    assert DeltaTable(path).to_pyarrow_table()["n"].null_count == 0
