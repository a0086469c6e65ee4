"""The job `erase` (M014): a dry run unless told otherwise, and no value in what Dagster keeps."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable

from rivermark.backfill.erasure.record import ERASURES
from rivermark.settings import Settings
from tests.oracles.shop import append
from tests.platform.conftest import failure
from tests.platform.small_topology import RIDES

pytestmark = pytest.mark.platform


def run_erase(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: object
) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("erase").execute_in_process(
        instance=instance,
        run_config={"ops": {"erase_rows": {"config": config}}},
        raise_on_error=False,
    )


def test_m014_rows_go_once_the_job_is_told_so(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    for n, driver in enumerate(("ann", "bob")):
        place = {"_file": "a", "_row": n, "_ingest_batch": n}
        append(settings, RIDES.admitted, [{"ride_id": n, "at": at, "driver": driver, **place}])
    person = tmp_path / "person.txt"
    person.write_text("driver=ann\n")
    table = settings.lake().path(RIDES.admitted)

    assert run_erase(defs, instance, file=str(person)).success
    assert DeltaTable(table).to_pyarrow_table().num_rows == 2
    done = run_erase(defs, instance, file=str(person), dry_run=False, by="ada", because="DSR-104")

    assert done.success
    assert DeltaTable(table).to_pyarrow_table()["driver"].to_pylist() == ["bob"]
    record = DeltaTable(settings.lake().path(ERASURES)).to_pyarrow_table().to_pylist()
    assert {(row["by"], row["because"]) for row in record} == {("ada", "DSR-104")}
    kept = instance.all_logs(done.run_id)
    assert not any("ann" in str(event) for event in kept)


def test_m014_a_person_who_is_not_named_fails_the_step(
    defs: dg.Definitions, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    person = tmp_path / "person.txt"
    person.write_text("nobody=ann\n")

    done = run_erase(defs, instance, file=str(person))

    assert "neither personal nor a key" in failure(done)
