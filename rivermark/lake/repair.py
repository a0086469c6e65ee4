"""What can be repaired in a table without a guess. Call it with no writer at work."""

from __future__ import annotations

from pathlib import Path

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.log_check import LAST_CHECKPOINT
from rivermark.lake.locks import commit_lock


def repair_file(table_path: str, fault: Fault) -> bool:
    """Repair one fault of a table's log; returns whether it is gone."""
    path = Path(fault.path)
    with commit_lock(table_path):
        match fault.repair:
            case "rewrite checksum":
                _delete(path)
                return write_checksum(table_path, int(path.name[:20]))
            case "drop checkpoint":
                _delete(path.with_name(LAST_CHECKPOINT))
                _delete(path)
            case "drop entry":
                _delete(path.with_suffix(".crc"))
                _delete(path)
            case "drop checksum" | "drop hint" | "drop draft":
                _delete(path)
            case _:
                return False
    return True


def _delete(path: Path) -> None:
    """Delete a file with its checksum file, where there are any."""
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
