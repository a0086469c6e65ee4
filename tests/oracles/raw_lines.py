"""Lines of one file, as admission hands them to the parser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def lines_of(
    payloads: Sequence[str], kind: str = "json", columns: Sequence[str] | None = None
) -> pa.Table:
    """Lines of a file that landed at the beginning of 2026."""
    head = ",".join(columns) if columns else None
    known = {
        "_file": ("x.json", pa.string()),
        "_ingest_batch": (0, pa.int64()),
        "_ingested_at": (NOW, pa.timestamp("us", "UTC")),
        "_landed_at": (NOW, pa.timestamp("us", "UTC")),
        "_arrival": (0, pa.int32()),
        "_format": (kind, pa.string()),
        "_columns": (json.dumps(columns) if columns else None, pa.string()),
        "_head": (head, pa.string()),
    }
    count = len(payloads)
    table = pa.table({n: pa.array([value] * count, t) for n, (value, t) in known.items()})
    table = table.append_column("_row", pa.array(range(1, count + 1), pa.int64()))
    return table.append_column("payload", pa.array(payloads, pa.string()))
