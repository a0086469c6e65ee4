"""Materializations written to Dagster's event log many at a time.

Dagster 1.13 stores an event in SQLite by three transactions, each in a file that is opened for it:
twenty thousand days take minutes. Here the events of an asset take three transactions in all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from itertools import groupby

import dagster as dg
from dagster._core.events import DagsterEvent, DagsterEventType, StepMaterializationData
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage


def store_materializations(
    instance: dg.DagsterInstance,
    events: Sequence[dg.AssetMaterialization],
    op: dg.OpExecutionContext | None = None,
) -> None:
    """Store the events, those of one asset behind each other, as of a run's step or of no run.

    Unlike what is logged by a step, they are not kept in memory for its result.
    """
    storage = instance.event_log_storage
    for _, of_asset in groupby(events, key=lambda event: event.asset_key):
        entries = [_entry(event, op) for event in of_asset]
        if isinstance(storage, SqliteEventLogStorage):
            _store_in_sqlite(storage, entries)
        else:
            storage.store_event_batch(entries)


def _store_in_sqlite(storage: SqliteEventLogStorage, entries: Sequence[dg.EventLogEntry]) -> None:
    """A run has a file of its own; the index has the events of all assets a second time."""
    *others, last = entries
    with storage.run_connection(last.run_id) as shard:
        shard.execute(storage.prepare_insert_event_batch(entries))
    with storage.index_connection() as index:
        if others:
            index.execute(storage.prepare_insert_event_batch(others))
        number = index.execute(storage.prepare_insert_event(last)).lastrowid
    storage.store_asset_event(last, number)


def _entry(event: dg.AssetMaterialization, op: dg.OpExecutionContext | None) -> dg.EventLogEntry:
    job_name = RUNLESS_JOB_NAME if op is None else op.job_name
    dagster_event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name=job_name,
        node_handle=None if op is None else op.op_handle,
        event_specific_data=StepMaterializationData(event),
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=logging.DEBUG,
        user_message="",
        run_id=RUNLESS_RUN_ID if op is None else op.run_id,
        timestamp=time.time(),
        step_key=dagster_event.step_key,
        job_name=job_name,
        dagster_event=dagster_event,
    )
