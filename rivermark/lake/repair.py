"""Repairs of a table that need no guess. Call them with no writer at work."""

from __future__ import annotations

from pathlib import Path

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.log_listing import LAST_CHECKPOINT
from rivermark.lake.integrity.sidecar import delete_with_sidecar
from rivermark.lake.locks import commit_lock


def repair_file(table_path: str, fault: Fault) -> bool:
    """Repair one fault of a table's log; returns whether it is gone."""
    path = Path(fault.path)
    with commit_lock(table_path):
        match fault.repair:
            case "rewrite checksum":
                delete_with_sidecar(path)
                return write_checksum(table_path, int(path.name[:20]))
            case "drop checkpoint":
                delete_with_sidecar(path.with_name(LAST_CHECKPOINT))
                delete_with_sidecar(path)
            case "drop entry":
                delete_with_sidecar(path.with_suffix(".crc"))
                delete_with_sidecar(path)
            case "drop checksum" | "drop hint" | "drop draft":
                delete_with_sidecar(path)
            case _:
                return False
    return True
