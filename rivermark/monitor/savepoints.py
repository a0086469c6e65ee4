"""Faults of savepoints: files that are not whole, inputs that cannot be read on."""

from __future__ import annotations

from dataclasses import replace

from deltalake.exceptions import DeltaError

from rivermark.lake.delta import delta_table
from rivermark.model.errors import RivermarkError, TableDamaged
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.fsck import fsck
from rivermark.runtime.savepoint.manifest import TableVersion
from rivermark.runtime.savepoint.obstacles import check_inputs
from rivermark.runtime.savepoint.store import check_local, files_in, lake_of, savepoint
from rivermark.settings import Settings


def verify(settings: Settings, stream: AnyStream, name: str, *, quick: bool = False) -> list[str]:
    """Faults of a savepoint, a sentence each: its files, and what its inputs can still give.

    Every file is read as by fsck; `quick` leaves out the content of data files and of state.
    """
    lake = settings.lake()
    check_local(lake)
    made = savepoint(lake, stream.name, name)
    kept = lake_of(lake, made)
    within = settings.model_copy(update={"lake_root": kept.root})
    faults = []
    for table, version in made.tables.items():
        try:
            actual = TableVersion.of(delta_table(kept.path(table)))
        except (TableDamaged, DeltaError, OSError) as error:
            faults.append(str(error))
            continue
        if actual != version and replace(actual, schema="") != version:
            faults.append(f"table '{table}' is {actual}, and the manifest says {version}")
    folder = kept.checkpoint(made.stream, made.generation)
    files = files_in(folder)
    for file, size in made.checkpoint.items():
        if files.get(file) != size:
            problem = "is missing" if file not in files else f"has {files[file]} bytes, not {size}"
            faults.append(f"{folder}/{file} {problem}")
    walked = fsck(within, Topology((stream,)), quick=quick)
    faults += [f"{each.fault.path} {each.fault.problem}" for each in walked.faults]
    try:
        check_inputs(lake, stream, made)
    except RivermarkError as error:
        faults.append(str(error))
    return list(dict.fromkeys(faults))
