"""The plan of a batch without data, written at a start in Spark's place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rivermark.lake.integrity.sidecar import chunk_sums, sidecar_of
from rivermark.runtime.checkpoint.integrity import check_files, faults_of_rest
from rivermark.runtime.checkpoint.power_failure import drop_torn_batches
from rivermark.runtime.checkpoint.watermarks import batch_to_close, plan_closing_batch
from tests.kills import Killer

CONF = {"spark.sql.shuffle.partitions": "4"}
PLACES = '{"reservoirId":"5e","reservoirVersion":7}\n-'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two finished batches; the second one led to a later watermark."""
    put(tmp_path / "metadata", json.dumps({"id": "7f6f5bf6-6a0f-4c3c-a7b2-6d4b1b0f7c1e"}))
    plan(tmp_path, 0, 0)
    finish(tmp_path, 0, 1_000)
    plan(tmp_path, 1, 1_000)
    finish(tmp_path, 1, 2_001)
    put(tmp_path / "state" / "0" / "0" / "2.delta", "some state")
    return tmp_path


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    sidecar_of(path).write_bytes(chunk_sums(text.encode()))


def plan(folder: Path, batch: int, watermark: int, version: str = "v1") -> None:
    metadata = {"batchWatermarkMs": watermark, "batchTimestampMs": 5, "conf": CONF}
    put(folder / "offsets" / str(batch), f"{version}\n{json.dumps(metadata)}\n{PLACES}")


def finish(folder: Path, batch: int, watermark: int) -> None:
    content = json.dumps({"nextBatchWatermarkMs": watermark})
    put(folder / "commits" / str(batch), f"v1\n{content}")


def test_the_batch_reads_nothing_and_runs_by_the_watermark_that_the_last_one_led_to(
    checkpoint: Path,
) -> None:
    assert batch_to_close(str(checkpoint)) == 2
    assert plan_closing_batch(str(checkpoint), 2)

    version, metadata, places = (checkpoint / "offsets" / "2").read_text().split("\n", 2)
    assert (version, places) == ("v1", PLACES)
    written = json.loads(metadata)
    assert written.pop("batchTimestampMs") > 5
    assert written == {"batchWatermarkMs": 2_001, "conf": CONF}
    # It is planned now, and not planned again.
    assert batch_to_close(str(checkpoint)) is None


def test_no_batch_is_missing_where_spark_would_make_none(checkpoint: Path, tmp_path: Path) -> None:
    assert batch_to_close(str(tmp_path / "none")) is None
    finish(checkpoint, 1, 1_000)
    assert batch_to_close(str(checkpoint)) is None, "the watermark did not move"
    finish(checkpoint, 1, 2_001)
    plan(checkpoint, 2, 2_001)
    assert batch_to_close(str(checkpoint)) is None, "the next batch is planned"
    (checkpoint / "offsets" / "2").unlink()
    (checkpoint / "state" / "0" / "0" / "2.delta").rename(checkpoint / "2.delta")
    for folder in ("state/0/0", "state/0", "state"):
        for left in (checkpoint / folder).iterdir():
            left.unlink()
        (checkpoint / folder).rmdir()
    assert batch_to_close(str(checkpoint)) is None, "nothing is kept"


def test_another_format_of_the_log_is_left_to_spark(checkpoint: Path) -> None:
    plan(checkpoint, 1, 1_000, version="v2")
    assert not plan_closing_batch(str(checkpoint), 2)
    assert not (checkpoint / "offsets" / "2").exists()


def test_a_kill_before_any_step_leaves_a_checkpoint_that_starts(
    checkpoint: Path, killer: Killer
) -> None:
    killer.within("rivermark.lake.filesystem.filesystem")
    put(checkpoint / "offsets" / "2", "of a file that was lost")
    (checkpoint / "offsets" / "2").unlink()

    def removed() -> Path:
        (checkpoint / "offsets" / "2").unlink(missing_ok=True)
        return checkpoint

    steps = 0
    for _, folder in killer.before_each(removed, lambda f: plan_closing_batch(str(f), 2)):
        steps += 1
        check_files(str(folder), "test/x")
        assert not [*faults_of_rest(folder, "test/x")]
        assert drop_torn_batches("test/x", str(folder), lambda: 1) is None
        if batch_to_close(str(folder)) is not None:
            plan_closing_batch(str(folder), 2)
        assert (folder / "offsets" / "2").read_text().endswith(PLACES)
    assert steps > 4


def test_a_plan_that_a_power_failure_cut_is_planned_again(checkpoint: Path) -> None:
    plan_closing_batch(str(checkpoint), 2)
    (checkpoint / "offsets" / "2").write_text("")
    assert drop_torn_batches("test/x", str(checkpoint), lambda: 1) == 2
    assert batch_to_close(str(checkpoint)) == 2
