"""A person by values of columns, and the rows and texts that are of them."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.lake.append.data_file import column_at
from rivermark.lake.filesystem import write_file
from rivermark.model.errors import WrongUse
from rivermark.model.nearest import did_you_mean
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology

BODIES: Final = ("payload", "event_json", "body")
"""Columns of the platform's own tables that hold a row as text."""
REMARKS: Final = ("details", "reason", "message", "key_json")
"""Columns beside them that may quote one of its values."""
SALT: Final = "erasure.salt"


@dataclass(frozen=True)
class Person:
    """Values, as texts, by column (`rider.email` within a struct), any of which makes a row theirs.

    `names` are those under which sources spell the columns, in lower case.
    """

    values: Mapping[str, tuple[str, ...]]
    names: Mapping[str, frozenset[str]]

    def columns_in(self, names: Iterable[str]) -> list[str]:
        """Those of a table's columns that have to be read, by which its rows are told."""
        wanted = {path.partition(".")[0] for path in self.values}
        if {*BODIES} & {*names}:
            wanted |= {*BODIES, *REMARKS}
        return [name for name in names if name in wanted]

    def rows_of(self, rows: pa.Table) -> pa.Array:
        """By row, whether it is of the person, by its columns or by the text that it holds."""
        mask = pa.array([False] * rows.num_rows, pa.bool_())
        for path, texts in self.values.items():
            column = _column(rows, path)
            if column is not None:
                mask = pc.or_(mask, _is_one_of(column, texts))
        written = [name for name in (*BODIES, *REMARKS) if name in rows.column_names]
        if any(name in BODIES for name in written):
            mask = pc.or_(mask, self._texts(rows.select(written), self._in_row))
        return mask

    def json_rows(self, payloads: pa.ChunkedArray) -> pa.Array:
        """By row, whether a JSON object says one of the values; other texts are passed over."""

        def says(row: Mapping[str, str | None]) -> bool:
            members = _members(row["payload"])
            return members is not None and self._in_members(members)

        return self._texts(pa.table({"payload": payloads}), says)

    def _texts(self, rows: pa.Table, is_theirs: Callable[[dict[str, Any]], bool]) -> pa.Array:
        """Ask of each row in which any of the values stands at all."""
        mask = pa.array([False] * rows.num_rows, pa.bool_())
        for column in rows.columns:
            for form in self._forms:
                has = pc.fill_null(pc.match_substring(column, form), False)
                mask = pc.or_(mask, pa.concat_arrays(has.chunks) if has.chunks else mask)
        near = pc.indices_nonzero(mask)
        chosen = zip(near.to_pylist(), rows.take(near).to_pylist(), strict=True)
        theirs = {number for number, row in chosen if is_theirs(row)}
        return pa.array([number in theirs for number in range(rows.num_rows)], pa.bool_())

    @cached_property
    def _forms(self) -> frozenset[str]:
        return frozenset(f for texts in self.values.values() for t in texts for f in spellings(t))

    def _in_row(self, row: Mapping[str, str | None]) -> bool:
        """A body that is JSON says by its members whose it is; else any text may mention them."""
        for name in BODIES:
            members = _members(row.get(name))
            if members is not None and not ({*members} <= {"timer"}):
                return self._in_members(members)
        return any(self._mentions(text) for text in row.values() if text)

    def _in_members(self, members: Mapping[str, set[str]]) -> bool:
        return any(
            members.get(name, set()).intersection(texts)
            for path, texts in self.values.items()
            for name in self.names[path]
        )

    def _mentions(self, text: str) -> bool:
        """True if a text holds one of the values as a whole word, as it is or as JSON writes it.

        In what is cut or broken JSON, only behind the name of a member.
        """
        is_json = text.lstrip().startswith(("{", "["))
        for path, texts in self.values.items():
            names = "|".join(map(re.escape, self.names[path]))
            before = rf'"(?i:{names})"\s*:\s*"?' if is_json else r"(?<![^\W_])"
            for form in (form for each in texts for form in spellings(each)):
                if re.search(rf"{before}{re.escape(form)}(?![^\W_])", text):
                    return True
        return False

    def digests(self, state: Path) -> list[str]:
        """The values as digests, by which a repetition and an auditor know them again.

        They are salted by a secret of the deployment beside its state, without which they say
        nothing: who deletes it makes them meaningless.
        """
        salt = _salt(state / SALT)
        return sorted(
            f"{path}:{hmac.digest(salt, f'{path}={text}'.encode(), 'sha256').hex()}"
            for path, texts in self.values.items()
            for text in texts
        )


def person_of(topology: Topology, texts: Iterable[str]) -> Person:
    """The person that `COLUMN=VALUE` texts name.

    Raises WrongUse for a column that is neither declared personal nor a key: it tells no person,
    and rows of many would go.
    """
    values: dict[str, tuple[str, ...]] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not (equals and path and value):
            raise WrongUse("write each value as COLUMN=VALUE, such as email=ann@example.org")
        values[path] = (*values.get(path, ()), value)
    if not values:
        raise WrongUse("name the person by a value of a personal column or a key: COLUMN=VALUE")
    tables = [table for stream in topology.streams for table in stream.tables]
    known = {name for table in tables for name in (*table.personal, *table.keys)}
    known -= {*BODIES, *REMARKS}
    for path in values:
        column = path.partition(".")[0]
        if column not in known:
            raise WrongUse(
                f"column '{column}' is neither personal nor a key of any table"
                f"{did_you_mean(column, known) or ';'} there are: {', '.join(sorted(known))}"
            )
    return Person(values, {path: _spelled(topology, path) for path in values})


def spellings(text: str) -> tuple[str, ...]:
    """A value as it stands in a text, and as JSON escapes it."""
    forms = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    return tuple(dict.fromkeys(forms))


def _spelled(topology: Topology, path: str) -> frozenset[str]:
    """The names of a column in JSON: its own, and those under which fields of ingests look it up.

    Of a path the last part: members are looked at wherever they stand.
    """
    fields = [f for s in topology.streams if isinstance(s, Ingest) for f in s.contract.fields]
    names = {name for f in fields if f.name == path for name in f.names}
    return frozenset(name.rpartition(".")[2].lower() for name in (path, *names))


def _members(text: str | None) -> dict[str, set[str]] | None:
    """The single values of a JSON object by the name of their member, at any depth.

    None for what is no object.
    """
    try:
        # Numbers as they are spelled: a float has 15 digits.
        parsed = json.loads(text or "", parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    members: dict[str, set[str]] = {}
    waiting: list[tuple[str, Any]] = [("", parsed)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(str(inner).lower(), each) for inner, each in value.items()]
        elif isinstance(value, list):
            waiting += [(name, each) for each in value]
        elif value is not None:
            members.setdefault(name, set()).add(str(value))
    return members


def _column(rows: pa.Table, path: str) -> pa.Array | None:
    """The values of a column, or of a field within a struct; None where the rows have none."""
    parts = path.split(".")
    kind: pa.DataType = pa.struct([*rows.schema])
    for part in parts:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    column = column_at(rows, (*parts,))
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], kind)


def _is_one_of(column: pa.Array, texts: Iterable[str]) -> pa.Array:
    """By row, whether a column holds one of the values, or a list of it does."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _is_one_of(pc.list_flatten(column), texts)
        rows = {*pc.list_parent_indices(column).filter(inner).to_pylist()}
        return pa.array([row in rows for row in range(len(column))], pa.bool_())
    values = [value for text in texts if (value := _as(text, kind)) is not None]
    known = pa.array([value.as_py() for value in values], kind) if values else pa.array([], kind)
    return pc.fill_null(pc.is_in(column, known), False)


def _as(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A value of a column's type; None where the text spells none."""
    try:
        return pa.array([text], pa.string()).cast(kind)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _salt(path: Path) -> bytes:
    """The deployment's secret, made once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(str(path), secrets.token_bytes(32))
        path.chmod(0o600)
    return path.read_bytes()
