"""One log entry: whole as it was written, or refused. Never read as a commit without rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from pyarrow import fs

from rivermark.model.errors import TableDamaged

Actions = list[dict[str, Any]]

WRITTEN: Final = frozenset({"WRITE", "STREAMING UPDATE"})
"""Operations whose own metrics say what they added."""


def entry_path(folder: str, version: int) -> str:
    """The file of a log entry."""
    return f"{folder}/{version:020d}.json"


def sums_path(folder: str, version: int) -> str:
    """The version checksum file beside a log entry."""
    return f"{folder}/{version:020d}.crc"


def read_entry(store: fs.FileSystem, folder: str, version: int) -> Actions:
    """The actions of a version's log entry. Raises FileNotFoundError, and as `actions_in`."""
    path = entry_path(folder, version)
    with store.open_input_stream(path) as file:
        return actions_in(path, file.read())


def actions_in(path: str, content: bytes) -> Actions:
    """The actions of a log entry. Raises TableDamaged for one that is empty or cut."""
    if not content.strip():
        raise damaged(path, "is empty" if not content else "holds nothing but blanks")
    actions: Actions = []
    # Bytes, not text: a predicate may hold characters at which Python splits texts.
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            action = json.loads(line)
        except ValueError as error:
            raise damaged(path, f"cannot be read in line {number} ({error})") from error
        if not isinstance(action, dict):
            raise damaged(path, f"holds no action in line {number}")
        actions.append(action)
    if complete(actions) is False:
        raise damaged(path, "lacks files that its own commitInfo counts: it was cut")
    return actions


def complete(actions: Actions) -> bool | None:
    """True if an entry holds what its commitInfo says was added; None where that says nothing.

    Of files where delta-rs or this project counted them; of rows with Spark, whose count of files
    has those in it that turned out empty.
    """
    info = next((each["commitInfo"] for each in actions if "commitInfo" in each), None)
    if info is None or info.get("operation") not in WRITTEN:
        return None
    metrics = info.get("operationMetrics") or {}
    adds = [each["add"] for each in actions if "add" in each]
    spark = str(info.get("engineInfo", "")).startswith("Apache-Spark")
    files = metrics.get("num_added_files", None if spark else metrics.get("numFiles"))
    if files is not None:
        return len(adds) >= int(files)
    rows = metrics.get("numOutputRows")
    known = _rows(adds)
    return None if rows is None or known is None else known >= int(rows)


def _rows(adds: Iterable[dict[str, Any]]) -> int | None:
    rows = 0
    for add in adds:
        counted = json.loads(add.get("stats") or "{}").get("numRecords")
        if counted is None:
            return None
        rows += counted
    return rows


def damaged(path: str, what: str) -> TableDamaged:
    """The refusal of a file of a table: names it, and the command that looks into it."""
    return TableDamaged.of(table_in(path), path, what)


def table_in(path: str) -> str:
    """The name of the table that a file belongs to; its folder for one outside of a lake."""
    folder = path.split("/_delta_log", 1)[0]
    return folder.rsplit("/tables/", 1)[-1]


def first_line(error: Exception) -> str:
    """The message of Arrow about a file, without the lines that follow."""
    return str(error).strip().split("\n", 1)[0]
