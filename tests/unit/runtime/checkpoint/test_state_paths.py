"""The schemas of state are found where the checkpoint lies now, whole after a kill at any step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyarrow import fs

from rivermark.lake.integrity.sidecar import chunk_sums, sidecar_of
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint import state_paths
from rivermark.runtime.checkpoint.power_failure import drop_torn_batches
from rivermark.runtime.checkpoint.state_paths import correct_state_paths, faults_of_state_paths

ENTRY = "state/0/_metadata/v2/4"
SCHEMA = "state/0/_stateSchema/default/4_e973"


def put(path: Path, content: str) -> None:
    """A file of Spark's, with the checksums beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    sidecar_of(path).write_bytes(chunk_sums(content.encode()))


def entry(*schemas: str) -> str:
    """State metadata of Spark's that names those schemas."""
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [*schemas]}]
    known = {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": stores}
    return "v2\n" + json.dumps(known | {"operatorPropertiesJson": '{"ü":"\\u2028"}'})


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A checkpoint that was moved; the old place has a space in its name, and is gone."""
    old, new = tmp_path / "old lake" / "0000", tmp_path / "new lake" / "0000"
    put(old / "offsets" / "4", 'v1\n{}\n{"a":1}')
    put(old / "commits" / "4", "v1\n{}")
    put(old / SCHEMA, "schema")
    put(old / ENTRY, entry(f"file:{old}/{SCHEMA}"))
    shutil.copytree(old, new)
    shutil.rmtree(old)
    return new


def named(checkpoint: Path) -> list[str]:
    """The schemas that the entry names."""
    version, text = (checkpoint / ENTRY).read_text().split("\n", 1)
    assert version == "v2"
    paths: list[str] = json.loads(text)["stateStoreInfo"][0]["stateSchemaFilePaths"]
    return paths


def test_a_moved_checkpoint_names_its_own_schemas(moved: Path) -> None:
    (fault,) = faults_of_state_paths(str(moved), "test/x")
    assert (fault.path, fault.repair, fault.note) == (str(moved / ENTRY), "correct paths", True)

    correct_state_paths(str(moved), "test/x")

    assert named(moved) == [f"file:{moved}/{SCHEMA}"]
    # Spark takes each name in the folder for a batch, and Hadoop refuses other checksums.
    assert [path.name for path in (moved / ENTRY).parent.iterdir()] == ["4"]
    assert [*faults_of_state_paths(str(moved), "test/x")] == []


def test_a_checkpoint_in_its_place_stays_as_it_is(moved: Path) -> None:
    correct_state_paths(str(moved), "test/x")
    before = (moved / ENTRY).stat()
    correct_state_paths(str(moved), "test/x")
    link = moved.parent.parent / "link"
    link.symlink_to(moved.parent)
    correct_state_paths(str(link / moved.name), "test/x")

    assert (moved / ENTRY).stat() == before
    correct_state_paths(str(moved / "none"), "test/x")


def test_a_kill_leaves_the_entry_as_it_was_or_corrected(
    moved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (moved / ENTRY).read_text()

    def die(*_: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(state_paths, "put_file", die)
        with pytest.raises(KeyboardInterrupt):
            correct_state_paths(str(moved), "test/x")
    assert (moved / ENTRY).read_text() == before
    assert not sidecar_of(moved / ENTRY).exists()

    correct_state_paths(str(moved), "test/x")
    assert named(moved) == [f"file:{moved}/{SCHEMA}"]


@pytest.mark.parametrize("content", ["", "v2\n", "v2\n[]", 'v2\n{"stateStoreInfo": [3]}'])
def test_a_damaged_entry_is_named(moved: Path, content: str) -> None:
    put(moved / ENTRY, content)

    with pytest.raises(CheckpointIncompatible, match=f"{ENTRY} is damaged"):
        correct_state_paths(str(moved), "test/x")
    (fault,) = faults_of_state_paths(str(moved), "test/x")
    assert ENTRY in fault.problem


def test_a_schema_that_is_gone_is_a_fault(moved: Path) -> None:
    correct_state_paths(str(moved), "test/x")
    (moved / SCHEMA).unlink()

    (fault,) = faults_of_state_paths(str(moved), "test/x")
    assert (fault.path, fault.note) == (str(moved / SCHEMA), False)
    assert "rivermark reset test/x" in fault.remedy


@pytest.mark.parametrize("torn", [ENTRY, SCHEMA])
@pytest.mark.parametrize("finished", [True, False])
def test_what_an_unfinished_batch_tore_is_written_again(
    moved: Path, torn: str, *, finished: bool
) -> None:
    if not finished:
        (moved / "commits" / "4").unlink()
    (moved / torn).write_text("")

    drop_torn_batches("test/x", str(moved), lambda: None)

    assert (moved / ENTRY).exists() == finished


def test_a_checkpoint_of_an_object_store_is_compared_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(state_paths, "filesystem", lambda uri: (store, uri.removeprefix("s3://")))
    path = tmp_path / "new" / "lake" / ENTRY
    path.parent.mkdir(parents=True)
    path.write_text(entry(f"s3://old/lake/{SCHEMA}"))

    correct_state_paths("s3://new/lake", "test/x")

    assert named(tmp_path / "new" / "lake") == [f"s3://new/lake/{SCHEMA}"]
