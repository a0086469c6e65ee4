"""What a power failure leaves of Spark's checkpoint: done again from a whole plan, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rivermark.lake import durable
from rivermark.lake.integrity.sidecar import chunk_sums, sidecar_of
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint.power_failure import CheckpointSync, drop_torn_batches


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batches 0 to 3: the last one is planned and not finished."""
    put(tmp_path / "metadata", '{"id":"5e"}')
    for batch in range(4):
        put(tmp_path / "offsets" / str(batch), f"v1\n{{}}\n{batch}")
        if batch < 3:
            put(tmp_path / "commits" / str(batch), "v1\n{}")
            for partition in "01":
                put(tmp_path / "state" / "0" / partition / f"{batch + 1}.delta", "some state")
    return tmp_path


def put(path: Path, text: str) -> None:
    """A file of Spark's, with the checksums beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    sidecar_of(path).write_bytes(chunk_sums(text.encode()))


def whole(folder: Path) -> set[str]:
    """The files of a checkpoint without the checksums."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)) for p in files if not p.name.startswith(".")}


def state(*versions: int) -> set[str]:
    """The files of those versions of the state."""
    return {f"state/0/{partition}/{v}.delta" for partition in "01" for v in versions}


def batches(folder: str, *numbers: int) -> set[str]:
    """Entries of one of the logs."""
    return {f"{folder}/{number}" for number in numbers}


def test_a_whole_checkpoint_is_left_alone(checkpoint: Path) -> None:
    before = whole(checkpoint)
    assert drop_torn_batches("test/x", str(checkpoint), lambda: 3) is None
    assert drop_torn_batches("test/x", str(checkpoint / "none"), lambda: None) is None
    assert whole(checkpoint) == before


@pytest.mark.parametrize("content", ["", "v1\n{", "v1\n{}\n"])
@pytest.mark.parametrize(
    ("torn", "held", "again", "left"),
    [
        ("offsets/3", 2, 3, {"offsets": 3, "commits": 3, "state": 3}),
        ("commits/2", 2, 2, {"offsets": 3, "commits": 2, "state": 2}),
        ("state/0/1/3.delta", 2, 2, {"offsets": 3, "commits": 2, "state": 2}),
        ("commits/2", 1, 2, {"offsets": 3, "commits": 2, "state": 2}),
    ],
)
def test_what_follows_the_newest_commits_is_done_again(
    checkpoint: Path, torn: str, held: int, again: int, left: dict[str, int], content: str
) -> None:
    (checkpoint / torn).write_text(content)

    assert drop_torn_batches("test/x", str(checkpoint), lambda: held) == again

    assert whole(checkpoint) == {
        "metadata",
        *batches("offsets", *range(left["offsets"])),
        *batches("commits", *range(left["commits"])),
        *state(*range(1, left["state"] + 1)),
    }
    assert drop_torn_batches("test/x", str(checkpoint), lambda: held) is None


@pytest.mark.parametrize(("torn", "held"), [("offsets/3", 3), ("commits/2", 3), ("metadata", 0)])
def test_a_plan_that_is_lost_of_a_batch_that_is_held_is_refused(
    checkpoint: Path, torn: str, held: int
) -> None:
    (checkpoint / torn).write_text("")
    before = whole(checkpoint)

    with pytest.raises(CheckpointIncompatible) as refused:
        drop_torn_batches("test/x", str(checkpoint), lambda: held)

    assert torn in str(refused.value)
    assert "rivermark reset test/x" in str(refused.value)
    assert whole(checkpoint) == before


@pytest.mark.parametrize("torn", ["metadata", "offsets/0"])
def test_a_first_batch_that_was_never_committed_leaves_nothing(tmp_path: Path, torn: str) -> None:
    put(tmp_path / "metadata", '{"id":"5e"}')
    put(tmp_path / "offsets" / "0", "v1\n{}\n0")
    put(tmp_path / "state" / "0" / "0" / "1.delta", "x")
    (tmp_path / torn).write_text("")

    assert drop_torn_batches("test/x", str(tmp_path), lambda: None) == 0
    assert whole(tmp_path) == ({"metadata"} if torn == "offsets/0" else set())


def test_the_first_batch_is_done_again_with_an_empty_state(tmp_path: Path) -> None:
    put(tmp_path / "metadata", '{"id":"5e"}')
    put(tmp_path / "offsets" / "0", "v1\n{}\n0")
    put(tmp_path / "state" / "0" / "0" / "1.delta", "")
    put(tmp_path / "state" / "0" / "_metadata" / "schema", "")

    assert drop_torn_batches("test/x", str(tmp_path), lambda: 0) == 0
    assert whole(tmp_path) == {"metadata", "offsets/0"}


@pytest.mark.parametrize("torn", ["offsets/1", "commits/1", "state/0/0/2.delta"])
def test_what_no_batch_reads_again_stops_nothing(checkpoint: Path, torn: str) -> None:
    (checkpoint / torn).write_text("")
    assert drop_torn_batches("test/x", str(checkpoint), lambda: 3) is None


def test_an_empty_checksum_file_is_removed(checkpoint: Path) -> None:
    sums = sidecar_of(checkpoint / "offsets" / "3")
    sums.write_bytes(b"")
    assert drop_torn_batches("test/x", str(checkpoint), lambda: 3) is None
    assert not sums.exists()


def test_a_torn_snapshot_is_no_loss(checkpoint: Path) -> None:
    before = whole(checkpoint)
    put(checkpoint / "state" / "0" / "0" / "2.snapshot", "")

    assert drop_torn_batches("test/x", str(checkpoint), lambda: 3) is None
    assert whole(checkpoint) == before


def test_each_batch_syncs_what_is_new_and_what_names_it(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(durable, "_sync", lambda path: synced.append(str(path)))
    monkeypatch.setattr(durable._Switch, "on", True)
    old = checkpoint / "commits" / "0"
    os.utime(old, (0, 0))
    syncing = CheckpointSync(str(checkpoint))

    syncing.sync()
    assert str(checkpoint / "offsets" / "3") in synced
    assert str(checkpoint / "offsets" / ".3.crc") not in synced
    assert str(checkpoint / "state" / "0" / "1" / "3.delta") in synced
    assert str(old) not in synced

    synced.clear()
    syncing.sync()
    assert synced == []

    put(checkpoint / "commits" / "3", "v1\n{}")
    syncing.sync()
    assert sorted(synced) == [str(checkpoint / "commits"), str(checkpoint / "commits" / "3")]
