"""Tables of which delta-rs would read other rows than they have are refused, naming the feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaProtocolError

from rivermark.lake.delta import (
    MAPPING,
    PHYSICAL,
    dataset_of,
    file_batches,
    read_all,
    read_rows,
)

ROWS = pa.table({"id": [1, 2], "place": [{"city": "Ulm"}, {"city": "Bonn"}]})


def mapped(folder: Path, names: dict[str, str], **protocol: Any) -> DeltaTable:
    """A table whose log has these names for columns in its files."""
    write_deltalake(folder, ROWS)
    entry = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            fields = (*schema["fields"], *schema["fields"][1]["type"]["fields"])
            for number, field in enumerate(fields, 1):
                field["metadata"]["delta.columnMapping.id"] = number
                field["metadata"][PHYSICAL] = names.get(field["name"], field["name"])
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"][MAPPING] = "name"
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5} | protocol
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return DeltaTable(folder)


@pytest.mark.parametrize("column", ["id", "place", "city"])
def test_a_column_of_another_name_in_its_files_is_refused(tmp_path: Path, column: str) -> None:
    """Each of its values would be missing, without an error."""
    table = mapped(tmp_path, {column: "col-395ada9a"})

    for read in (dataset_of, read_all):
        with pytest.raises(
            DeltaProtocolError, match=rf"'{column}' of another name .*columnMapping"
        ):
            read(table)


def test_columns_that_have_their_own_names_in_files_are_read(tmp_path: Path) -> None:
    table = mapped(tmp_path, {})

    assert read_rows(dataset_of(table)).to_pylist() == ROWS.to_pylist()
    assert read_all(table).to_pylist() == ROWS.to_pylist()


def test_some_columns_alone_are_read(tmp_path: Path) -> None:
    table = mapped(tmp_path, {})

    assert read_all(table, ("id", "none")).to_pylist() == [{"id": 1}, {"id": 2}]


def test_deletion_vectors_are_refused_where_files_alone_are_read(tmp_path: Path) -> None:
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    table = mapped(tmp_path, {}, minReaderVersion=3, minWriterVersion=7, **features)

    for read in (dataset_of, read_all):
        with pytest.raises(DeltaProtocolError, match="deletionVectors"):
            read(table)


def test_a_file_that_delta_rs_wrote_again_is_read_as_those_before(tmp_path: Path) -> None:
    rows = pa.table({"_file": ["a", "b"], "n": [1, 2], "tags": [["x"], None]})
    write_deltalake(tmp_path, rows)
    DeltaTable(tmp_path).delete("n = 1")
    [name] = [Path(uri).name for uri in DeltaTable(tmp_path).file_uris()]

    [batch] = file_batches(str(tmp_path), name, ["_file", "n", "tags"])
    assert batch.filter(pa.array([True])).to_pylist() == [{"_file": "b", "n": 2, "tags": None}]
