"""Our own records in a checkpoint: damage is named, and no changed digit is believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint.generation import (
    generation_path,
    open_generation,
    read_generation,
)
from rivermark.runtime.checkpoint.identity import Identity, check_identity, read_identity
from rivermark.runtime.checkpoint.process_schema import ProcessRecord, read_record, write_record
from tests.unit.model.declared import stream

HOURS = stream("test/hours")

Read = Callable[[], object]


def written(kind: str, lake: Lake) -> tuple[Path, Read]:
    """A record of the stream in the lake, and what reads it."""
    open_generation(lake, HOURS, 2)
    checkpoint = lake.checkpoint(HOURS.name, 0)
    if kind == "generation":
        return Path(generation_path(lake, HOURS)), lambda: read_generation(lake, HOURS)
    if kind == "identity":
        check_identity(HOURS.name, checkpoint, Identity({"limit": "2"}))
        return Path(checkpoint, "identity.json"), lambda: read_identity(checkpoint, HOURS.name)
    write_record(checkpoint, ProcessRecord(32, ()))
    return Path(checkpoint, "process.json"), lambda: read_record(checkpoint, HOURS.name)


KINDS = ["generation", "identity", "process"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", '{"numb', "{}", "[]", "\udcff"])
def test_a_damaged_record_is_named_with_a_way_out(tmp_path: Path, kind: str, text: str) -> None:
    path, read = written(kind, Lake(str(tmp_path)))
    path.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(CheckpointIncompatible, match=rf"'test/hours': {path} is damaged .*reset"):
        read()


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_digit_is_not_believed(tmp_path: Path, kind: str) -> None:
    path, read = written(kind, Lake(str(tmp_path)))
    text = path.read_text()
    changed = text.replace("2", "3", 1)
    assert changed != text
    path.write_text(changed)

    with pytest.raises(CheckpointIncompatible, match=rf"{path} is damaged .it was changed"):
        read()


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_an_earlier_release_has_no_checksum(tmp_path: Path, kind: str) -> None:
    path, read = written(kind, Lake(str(tmp_path)))
    before = read()
    content = json.loads(path.read_text())
    del content["check"]
    path.write_text(json.dumps(content))

    assert read() == before
