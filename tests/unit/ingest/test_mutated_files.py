"""Mutated files planned, read and cut into texts, beside an oracle of Python's own readers.

RIVERMARK_FUZZ_SEED is the first seed, 1 by default, and RIVERMARK_FUZZ_ROUNDS how many there are.
No JVM: the parser behind the texts is not part of it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark import Contract, Field, Ingest
from rivermark.ingest.parse.cutter import MALFORMED, Cutter, Spelled
from rivermark.ingest.plan import BatchPlanner, planned_split
from rivermark.ingest.source.files.pieces import pieces_of
from rivermark.lake.lake import Lake
from rivermark.model.source import PlannedSplit
from rivermark.sources import FileSource
from tests.oracles.mutated_files import (
    BINARY,
    MAX_ROW_BYTES,
    SPELLINGS,
    MalformedError,
    fates_of,
    texts_of,
)
from tests.oracles.mutations import land_mutated

SEED = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("RIVERMARK_FUZZ_ROUNDS", "1"))
FILES = 120
TYPES = {"at": "timestamp", "temperature": "decimal(9,3)", "count": "long", "ratio": "double"}

INGEST = Ingest(
    name="test/mutated",
    source=FileSource(folder="in", format=None),
    contract=Contract(
        fields=tuple(
            Field(name, TYPES.get(name, "string"), names[1:], required=name == "at")
            for name, names in SPELLINGS.items()
        ),
        event_time="at",
        max_row_bytes=MAX_ROW_BYTES,
    ),
    lateness=None,
    description="Mutated readings.",
    group="test",
)


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_mutated_files_are_read_as_pythons_readers_say(seed: int, tmp_path: Path) -> None:
    land_mutated(tmp_path / "landing" / "in", seed, FILES)
    lake = Lake(str(tmp_path / "lake"))
    planner = BatchPlanner(lake, str(tmp_path / "landing"), INGEST, "run")
    assert planner.poll().waiting == []
    rows = DeltaTable(lake.path(planner.table)).to_pyarrow_table().to_pylist()
    splits = [planned_split(row) for row in rows]

    fates = fates_of(tmp_path / "landing" / "in")
    whole = {name: fate.what[0] for (name, row), fate in fates.items() if row is None}
    reasons = {s.name: (s.reason or "").split(":")[0] for s in splits if s.status != "ready"}
    undecodable = {name for name, reason in whole.items() if reason == "file_corrupt"}
    assert {**reasons, **dict.fromkeys(undecodable, "file_corrupt")} == whole
    assert {name for name, _ in fates} <= {split.name for split in splits}
    wrong = [
        problem
        for split in splits
        if split.name not in whole and split.format not in BINARY
        for problem in differences(split)
    ]
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong[:20])


def differences(split: PlannedSplit) -> list[str]:
    """Lines of a text file whose texts are not those that Python reads."""
    pieces = pieces_of(split, FileSource(folder="in", format=None), None, 1 << 20)
    parts = [records.rows["payload"] for piece in pieces for records in piece.read()]
    payloads = pa.chunked_array(parts, pa.string()).combine_chunks()
    cutter = Cutter([Spelled.of(f) for f in INGEST.contract.fields], ",", MAX_ROW_BYTES)
    kinds, columns = (
        pa.array([v] * len(payloads), pa.string()) for v in (split.format, split.columns)
    )
    names = json.loads(split.columns) if split.columns and split.format == "csv" else []
    wrong = []
    for line, cut in zip(
        payloads.to_pylist(), cutter.cut(payloads, kinds, columns).to_pylist(), strict=True
    ):
        if not (bare := line.removeprefix("\ufeff")).strip(" ") or bare == split.head:
            continue
        found = (
            {name: cut[name] for name in SPELLINGS} if cut[MALFORMED] is None else cut[MALFORMED]
        )
        try:
            texts = texts_of(line, split.format or "", names)
        except MalformedError as malformed:
            right: object = str(malformed)
        else:
            right = {
                name: text if (text := texts.get(name)) and text.strip(" ") else None
                for name in SPELLINGS
            }
        if right != found:
            wrong.append(f"{split.name}: {line!r}\n  found {found}\n  right {right}")
    return wrong
