"""Tables of very many files: links to one small file, with bounds of their own in the log."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def forge_files(folder: Path, files: int, start: datetime, step: timedelta) -> DeltaTable:
    """A table of so many files, each of which says to hold one row of a batch and a moment."""
    row = pa.table(
        {"batch": pa.array([0], pa.int64()), "at": pa.array([start], pa.timestamp("us", "UTC"))}
    )
    write_deltalake(folder, row)
    (first,) = folder.glob("*.parquet")
    entries = []
    for n in range(1, files):
        os.link(first, folder / f"part-{n}.parquet")
        bounds = {"batch": n, "at": (start + n * step).isoformat().replace("+00:00", "Z")}
        stats = {
            "numRecords": 1,
            "minValues": bounds,
            "maxValues": bounds,
            "nullCount": {"batch": 0, "at": 0},
        }
        add = {
            "path": f"part-{n}.parquet",
            "size": first.stat().st_size,
            "partitionValues": {},
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
        entries.append(json.dumps({"add": add}))
    (folder / "_delta_log" / f"{1:020d}.json").write_text("\n".join(entries))
    return DeltaTable(folder)
