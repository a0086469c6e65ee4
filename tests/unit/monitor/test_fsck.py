"""`fsck` finds what is damaged, names it, and repairs what needs no guess."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark.model.errors import CheckpointIncompatible, RivermarkError, UnknownStream
from rivermark.monitor.fsck import Finding, FsckResult, fsck
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.checkpoint.identity import Identity, check_identity
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS, ProgressLog
from rivermark.runtime.supervision.reset import reset
from tests.damaged_lake import LONG, NOON, READER, RIDES, TOPOLOGY, DamagedLake


@pytest.fixture
def world(tmp_path: Path) -> DamagedLake:
    found = DamagedLake(tmp_path)
    found.grow(6)
    return found


def log_file(world: DamagedLake, name: str, table: str = LONG.name) -> Path:
    """A file of a table's log."""
    return Path(world.lake.path(table), "_delta_log", name)


def checkpoint(world: DamagedLake) -> Path:
    """The folder of the stream's checkpoint."""
    return Path(world.lake.checkpoint(READER.name, 0))


def walk(world: DamagedLake, *, repair: bool = False) -> FsckResult:
    """A walk over everything."""
    return fsck(world.settings, TOPOLOGY, repair=repair)


def only(result: FsckResult) -> Finding:
    """The one finding."""
    (finding,) = result.findings
    return finding


def test_a_whole_lake_has_no_fault(world: DamagedLake) -> None:
    steps: list[str] = []
    result = fsck(world.settings, TOPOLOGY, on_step=steps.append)

    assert result.findings == []
    assert result.tables == [LONG.name, RIDES.name]
    assert result.streams == [READER.name]
    assert result.files > 40
    assert steps == [f"table {LONG.name}", f"table {RIDES.name}", f"stream {READER.name}"]


def test_one_table_is_walked_with_its_stream(world: DamagedLake) -> None:
    assert fsck(world.settings, TOPOLOGY, [RIDES.name]).streams == []
    assert fsck(world.settings, TOPOLOGY, [LONG.name]).streams == [READER.name]
    with pytest.raises(UnknownStream, match="no table is named 'test/lnog'"):
        fsck(world.settings, TOPOLOGY, ["test/lnog"])


def test_a_damaged_checksum_file_is_written_again(world: DamagedLake) -> None:
    sums = log_file(world, f"{6:020d}.crc")
    whole = sums.read_bytes()
    sums.write_bytes(whole[:50])

    finding = only(walk(world))
    assert (finding.of, finding.fault.path) == (LONG.name, str(sums))
    assert finding.fault.repair == "rewrite checksum"
    assert only(walk(world, repair=True)).repaired
    assert sums.read_bytes() == whole
    assert walk(world).findings == []


def test_a_damaged_table_checkpoint_is_deleted_where_its_entries_are_there(
    world: DamagedLake,
) -> None:
    path = log_file(world, f"{4:020d}.checkpoint.parquet")
    path.write_bytes(path.read_bytes()[:-9])

    assert only(walk(world, repair=True)).repaired
    assert walk(world).findings == []
    assert world.rows(LONG) == world.expected()
    world.feed()
    world.run()
    assert world.rows(LONG) == world.expected()


def test_a_table_checkpoint_whose_entries_are_gone_is_no_matter_of_repair(
    world: DamagedLake,
) -> None:
    path = log_file(world, f"{4:020d}.checkpoint.parquet")
    path.write_bytes(b"")
    for version in range(4):
        log_file(world, f"{version:020d}.json").unlink()

    result = walk(world, repair=True)
    assert [f.fault.path for f in result.faults] == [str(path)]
    assert "Put the file back from a copy" in result.faults[0].fault.remedy


def test_a_hint_to_a_table_checkpoint_that_is_not_there_is_taken_away(world: DamagedLake) -> None:
    path = log_file(world, f"{4:020d}.checkpoint.parquet")
    path.unlink()

    finding = only(walk(world))
    assert finding.fault.path.endswith("_last_checkpoint")
    assert str(path) in finding.fault.problem
    walk(world, repair=True)
    assert walk(world).findings == []
    assert world.rows(LONG) == world.expected()


def test_state_of_a_moved_lake_is_a_note_and_names_its_own_files_then(world: DamagedLake) -> None:
    operator = checkpoint(world) / "state" / "0"
    entry, schema = (
        operator / "_metadata" / "v2" / "0",
        operator / "_stateSchema" / "default" / "0_e9",
    )
    for path in (entry, schema):
        path.parent.mkdir(parents=True)
    schema.write_text("schema")
    named = f"file:/old{schema}"
    entry.write_text(f'v2\n{{"stateStoreInfo":[{{"stateSchemaFilePaths":["{named}"]}}]}}')

    finding = only(walk(world))
    assert (finding.of, finding.fault.path) == (READER.name, str(entry))
    assert named in finding.fault.problem
    assert walk(world).faults == []
    assert only(walk(world, repair=True)).repaired
    assert f'"file:{schema}"' in entry.read_text()
    assert walk(world).findings == []


def empty_entries_of_an_unfinished_batch(world: DamagedLake) -> Path:
    """As a power loss leaves them: the newest entry is empty, and its batch is not finished."""
    for name in ("commits", "offsets"):
        (checkpoint(world) / name / "5").unlink()
        (checkpoint(world) / name / ".5.crc").unlink()
    shutil.rmtree(checkpoint(world) / "written")
    path = log_file(world, f"{6:020d}.json")
    path.write_bytes(b"")
    return path


def test_an_empty_last_entry_that_no_checkpoint_acknowledges_goes(world: DamagedLake) -> None:
    path = empty_entries_of_an_unfinished_batch(world)

    assert only(walk(world)).fault.problem == "is empty"
    assert only(walk(world, repair=True)).repaired
    assert not path.exists()
    world.run()
    assert world.rows(LONG) == world.expected()
    assert walk(world).findings == []


def test_an_empty_last_entry_of_a_finished_batch_stays(world: DamagedLake) -> None:
    path = log_file(world, f"{6:020d}.json")
    path.write_bytes(b"")

    finding = only(walk(world, repair=True))
    assert not finding.repaired
    assert "batch 5 is finished" in finding.why
    assert f"rivermark reset {READER.name}" in finding.why
    assert path.exists()


def test_nothing_is_repaired_under_a_run(world: DamagedLake) -> None:
    path = empty_entries_of_an_unfinished_batch(world)
    with Lease(world.settings.state, READER.name).acquire("run"):
        finding = only(walk(world, repair=True))

    assert not finding.repaired
    assert "not repaired" in finding.why
    assert path.exists()


def test_an_empty_plan_of_which_nothing_was_made_goes(world: DamagedLake) -> None:
    plan = checkpoint(world) / "offsets" / "6"
    plan.write_bytes(b"")

    assert only(walk(world)).fault.repair == "drop offsets"
    assert only(walk(world, repair=True)).repaired
    world.feed()
    world.run()
    assert world.rows(LONG) == world.expected()


def test_old_drafts_are_a_note_and_deleted(world: DamagedLake) -> None:
    draft = log_file(world, f".{'a' * 32}.tmp")
    draft.write_text("half")
    os.utime(draft, (0, 0))

    result = walk(world)
    assert (only(result).fault.note, result.faults) == (True, [])
    walk(world, repair=True)
    assert not draft.exists()


def data_file(world: DamagedLake) -> Path:
    return min(Path(world.lake.path(LONG)).glob("*.parquet"))


def state_file(world: DamagedLake) -> Path:
    """A file of state with a checksum file that is not its own."""
    path = checkpoint(world) / "state" / "0" / "0" / "1.delta"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"state")
    shutil.copy(checkpoint(world) / ".metadata.crc", path.with_name(".1.delta.crc"))
    return path


DAMAGES: dict[str, tuple[Callable[[DamagedLake], Path], str]] = {
    "an entry below a checkpoint": (lambda w: log_file(w, f"{2:020d}.json"), "stands for it"),
    "an entry": (lambda w: log_file(w, f"{5:020d}.json"), "Put the file back"),
    "a data file": (data_file, "rivermark reprocess"),
    "the query's name": (lambda w: checkpoint(w) / "metadata", "rivermark reset test/long"),
    "a finished batch": (lambda w: checkpoint(w) / "commits" / "5", "rivermark reset test/long"),
    "an older plan": (lambda w: checkpoint(w) / "offsets" / "2", "No start reads it"),
    "state": (state_file, "rivermark reset test/long"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_needs_a_decision_is_named_with_the_ways_out(world: DamagedLake, name: str) -> None:
    place, remedy = DAMAGES[name]
    path = place(world)
    path.write_bytes(path.read_bytes()[:-3])

    result = walk(world, repair=True)
    assert str(path) in {f.fault.path for f in result.faults}
    assert any(remedy in f.fault.remedy for f in result.faults)


def test_a_missing_data_file_is_named(world: DamagedLake) -> None:
    path = data_file(world)
    path.unlink()
    assert (only(walk(world)).fault.path, only(walk(world)).fault.problem) == (
        str(path),
        "is missing",
    )


def test_a_table_that_lost_its_newest_commits_is_a_fault_of_its_stream(world: DamagedLake) -> None:
    for file in log_file(world, "").glob(f"{6:020d}.*"):
        file.unlink()

    finding = only(walk(world))
    assert finding.of == READER.name
    assert "lacks batch 5" in finding.fault.problem


def test_a_checkpoint_that_is_older_than_its_table_is_a_fault_of_its_stream(
    world: DamagedLake,
) -> None:
    for path in (*checkpoint(world).glob("offsets/5"), *checkpoint(world).glob("commits/5")):
        path.unlink()

    finding = only(walk(world))
    assert finding.of == READER.name
    assert "holds batch 5 but" in finding.fault.problem
    with pytest.raises(CheckpointIncompatible, match="holds batch 5 but"):
        world.run()


@pytest.mark.parametrize("place", ["an entry", "the query's name", "generation.json"])
def test_to_start_over_is_a_way_out_of_any_damage(world: DamagedLake, place: str) -> None:
    path = {
        "an entry": log_file(world, f"{5:020d}.json"),
        "the query's name": checkpoint(world) / "metadata",
        "generation.json": checkpoint(world).parent / "generation.json",
    }[place]
    path.write_bytes(b"")
    with pytest.raises(RivermarkError, match=path.name):
        world.run()

    report = reset(world.settings, TOPOLOGY, READER, run_id="reset")

    assert report.generations == {READER.name: 1}
    assert walk(world).faults == []
    assert not world.lake.exists(LONG)


def test_a_changed_record_of_what_made_the_state_is_named(world: DamagedLake) -> None:
    check_identity(READER.name, str(checkpoint(world)), Identity({"limit": "2"}))
    assert walk(world).findings == []
    path = checkpoint(world) / "identity.json"
    path.write_text(path.read_text().replace('"2"', '"3"'))

    finding = only(walk(world, repair=True))
    assert (finding.of, finding.fault.path, finding.repaired) == (READER.name, str(path), False)
    assert finding.fault.problem == "is damaged (it was changed)"


def test_batches_are_run_without_a_record_where_that_is_damaged(
    world: DamagedLake, caplog: pytest.LogCaptureFixture
) -> None:
    ProgressLog(world.lake)
    entry = log_file(world, f"{0:020d}.json", STREAM_PROGRESS.name)
    entry.write_bytes(b"")

    record = ProgressLog(world.lake)
    record.add(
        BatchMetrics(stream=READER.name, generation=0, run_id="run", batch_id=0, started_at=NOON)
    )
    record.flush()

    assert caplog.text.count("batches are not recorded") == 1
    assert str(entry) in caplog.text


def test_m013_a_table_that_a_restore_set_back_is_a_fault(world: DamagedLake) -> None:
    table = DeltaTable(world.lake.path(LONG.name))
    table.restore(table.version() - 1)

    finding = only(walk(world))

    assert finding.of == READER.name
    assert "was set back by a RESTORE (version 7): rows of batch 5" in finding.fault.problem
    assert "Restore version 6" in finding.fault.problem
    table.restore(table.version() - 1)
    assert walk(world).findings == []
