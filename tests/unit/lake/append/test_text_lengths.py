"""Texts keep to the lengths that a table made by Spark declares."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.model.errors import RivermarkError


def declared(path: Path, kind: str) -> str:
    """A table whose column `t` is declared as that type, as Spark's log has it."""
    write_deltalake(
        str(path), pa.table({"n": pa.array([], pa.int64()), "t": pa.array([], "string")})
    )
    entry = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][1]["metadata"] = {"__CHAR_VARCHAR_TYPE_STRING": kind}
            action["metaData"]["schemaString"] = json.dumps(schema)
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        ("varchar(3)", "abc", "abc"),
        ("varchar(3)", "𠮷野家", "𠮷野家"),
        ("varchar(3)", "ab    ", "ab "),
        ("varchar(3)", None, None),
        ("char(3)", "a", "a  "),
        ("char(3)", "abc  ", "abc"),
    ],
)
def test_a_text_is_stored_as_spark_would(
    tmp_path: Path, kind: str, text: str | None, stored: str | None
) -> None:
    path = declared(tmp_path, kind)
    assert DeltaCommitter(path).append(pa.table({"n": [1], "t": pa.array([text], "string")}), {})
    assert DeltaTable(path).to_pyarrow_table()["t"].to_pylist() == [stored]


@pytest.mark.parametrize("kind", ["varchar(3)", "char(3)", "struct<a:varchar(3)>"])
def test_a_longer_text_is_refused(tmp_path: Path, kind: str) -> None:
    path = declared(tmp_path, kind)
    with pytest.raises(RivermarkError, match=f"column 't' is declared as {kind[:4]}"):
        DeltaCommitter(path).append(pa.table({"n": [1], "t": ["abcd"]}), {})
    assert DeltaTable(path).version() == 0
