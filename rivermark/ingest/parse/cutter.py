"""From payloads to the texts of fields, before anything is read as a number or a time.

Plain Python over one line at a time, so that no line decides how another is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse import json_object
from rivermark.ingest.parse.text_bytes import has_blank
from rivermark.model.contract import MAX_ROW_BYTES, Field

_QUOTED: Final = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')


def values_of(line: str, delimiter: str) -> list[str | None]:
    """The line's values in order; None for one that is empty and not quoted.

    A value that begins with a quote ends with one, and a quote within it is written twice; spaces
    and tabs between its last quote and the delimiter are no part of it. Elsewhere quotes are text,
    but for an odd one at the end of a value: there ends one that began some lines before.

    Raises:
        ValueError: a quote never closes or never opened, or text follows the one that closes.
    """
    if '"' not in line:
        return [value or None for value in line.split(delimiter)]
    values: list[str | None] = []
    is_odd = line.count('"') % 2 == 1
    at = 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is None and line.startswith('"', at):
            raise ValueError("a quote never closes")
        behind = quoted.end() if quoted else at
        end = line.find(delimiter, behind)
        end = len(line) if end < 0 else end
        if quoted is None:
            if is_odd and line[at:end].rstrip(" \t").endswith('"'):
                raise ValueError("a quote closes that never opened")
            values.append(line[at:end] or None)
        elif line[behind:end].strip(" \t"):
            raise ValueError("text behind a closing quote")
        else:
            values.append(quoted[1].replace('""', '"'))
        at = end + len(delimiter)
    return values


MALFORMED: Final = "_malformed"
"""Why a line is no record: a column beside those of the fields."""
UNPARSABLE: Final = "unparsable_json"
WRONG_NUMBER: Final = "wrong_number_of_values"
NO_KNOWN_COLUMN: Final = "no_known_column"
UNDECODABLE: Final = "undecodable_text"
TOO_LARGE: Final = "row_too_large"

Texts = Sequence[str | None]
"""The texts of the fields in their order, and why the line is malformed."""

_WORDS: Final = {True: "true", False: "false"}
_HALF_A_CHARACTER: Final = re.compile(r"[\ud800-\udfff]")
"""Characters that an escape such as \\ud800 stands for alone, and UTF-8 cannot hold."""


@dataclass(frozen=True)
class Spelled:
    """A field by its name, its spellings with its own first, and its words for 'no value'."""

    name: str
    spellings: tuple[str, ...]
    nulls: tuple[str, ...] = ("",)

    @classmethod
    def of(cls, field: Field) -> Self:
        """The spellings of a field, each once; the empty text is always a word for 'no value'."""
        names = tuple(dict.fromkeys((field.name, *field.names)))
        return cls(field.name, names, tuple(dict.fromkeys(("", *field.nulls))))

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys to look up, in turn: each spelling as it is declared, then in lower case."""
        return tuple(dict.fromkeys(key for s in self.spellings for key in (s, s.lower())))

    def without_nulls(self, texts: pa.StringArray) -> pa.StringArray:
        """The texts without the field's words for 'no value'."""
        if len(self.nulls) == 1 and not has_blank(texts):
            return texts
        words = pc.is_in(pc.utf8_trim(texts, " "), pa.array(self.nulls, pa.string()))
        return pc.if_else(words, None, texts) if pc.any(words).as_py() else texts


def _encoded(texts: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return whole.dictionary_encode("encode")


def places_of(names: Sequence[str]) -> dict[str, int]:
    """Places of columns by name: as it is spelled, else in lower case; the first of two."""
    backwards = [*enumerate(names)][::-1]
    return {name.lower(): n for n, name in backwards} | {name: n for n, name in backwards}


class Cutter:
    """Cuts payloads into the texts of fields.

    A field's text is that of its first spelling that has a value. A spelling is looked up as it is
    declared, and in any other letter case where the payload has no such name.
    """

    def __init__(
        self, fields: Sequence[Spelled], delimiter: str, max_bytes: int = MAX_ROW_BYTES
    ) -> None:
        self._fields = tuple(fields)
        self._keys = [field.keys for field in fields]
        self._first = [keys[0] for keys in self._keys]
        self._more = [(n, keys[1:]) for n, keys in enumerate(self._keys) if len(keys) > 1]
        self._delimiter = delimiter
        self._max_bytes = max_bytes
        self._exact = {spelling for field in fields for spelling in field.spellings}
        self._lower = {spelling.lower() for spelling in self._exact}

    def cut(self, payloads: pa.Array, formats: pa.Array, columns: pa.Array) -> pa.Array:
        """The texts of each payload as a struct, by its format and its file's columns (as JSON).

        A byte order mark before a line is no part of it: files are put together with theirs.

        Spark takes from the annotations that it is called for columns, and not for groups.
        """
        # By their codes: a file's columns may be longer than its lines.
        kinds, names = (_encoded(each) for each in (formats, columns))
        count = len(names.dictionary)
        shapes, places = np.unique(
            kinds.indices.to_numpy() * count + names.indices.to_numpy(), return_inverse=True
        )
        cutters = [
            self._cutter(kinds.dictionary[n // count].as_py(), names.dictionary[n % count].as_py())
            for n in shapes.tolist()
        ]
        large = pc.greater(pc.binary_length(payloads), self._max_bytes)
        if pc.any(large).as_py():
            payloads = pc.if_else(large, None, payloads)
        rows = [
            cutters[code]((payload or "").removeprefix("\ufeff"))
            for code, payload in zip(places.tolist(), payloads.to_pylist(), strict=True)
        ]
        for row in pc.indices_nonzero(pc.fill_null(large, False)).to_pylist():
            rows[row] = self._malformed(TOO_LARGE)
        columns_of_texts = zip(*rows, strict=True) if rows else [()] * (len(self._fields) + 1)
        arrays = [pa.array(texts, pa.string()) for texts in columns_of_texts]
        cells = [field.without_nulls(a) for field, a in zip(self._fields, arrays, strict=False)]
        return pa.StructArray.from_arrays(
            [*cells, arrays[-1]], [*(field.name for field in self._fields), MALFORMED]
        )

    def _cutter(self, kind: str | None, columns: str | None) -> Callable[[str], Texts]:
        if kind == "text":
            return self._cut_text
        if kind == "csv":
            return self._csv_cutter(json.loads(columns) if columns else [])
        return self._cut_json

    def _malformed(self, reason: str) -> Texts:
        return [*[None] * len(self._fields), reason]

    def _cut_text(self, line: str) -> Texts:
        """Take the line for every field that is spelled `text`; no line is malformed."""
        return [*(line if "text" in keys else None for keys in self._keys), None]

    def _csv_cutter(self, names: Sequence[str]) -> Callable[[str], Texts]:
        """The function that takes a line's values by the columns of its file's header."""
        place_of = places_of(names)
        places = [[place_of[key] for key in keys if key in place_of] for keys in self._keys]
        if not any(places):
            # As of a file without a header line.
            return lambda _: self._malformed(NO_KNOWN_COLUMN)
        first = [own[0] if own else len(names) for own in places]
        more = [(n, own[1:]) for n, own in enumerate(places) if len(own) > 1]

        def cut(line: str) -> Texts:
            try:
                values = values_of(line, self._delimiter)
            except ValueError:
                return self._malformed(WRONG_NUMBER)
            # Some empty values behind the last column are no data: whole years of taxi files have
            # them. A line of nothing but delimiters is none of those.
            if not len(names) <= len(values) <= 2 * len(names) or any(values[len(names) :]):
                return self._malformed(WRONG_NUMBER)
            values.append(None)
            texts = [values[n] for n in first]
            for n, own in more:
                if texts[n] is None:
                    texts[n] = next((values[m] for m in own if values[m] is not None), None)
            return [*texts, None]

        return cut

    def _cut_json(self, line: str) -> Texts:
        """Take an object's values by its own keys."""
        try:
            values = self._in_lower_case(json_object.values_of(line))
        except ValueError:
            return self._malformed(UNPARSABLE)
        texts = [*map(values.get, self._first)]
        for n, keys in self._more:
            if texts[n] is None:
                texts[n] = next((v for key in keys if (v := values.get(key)) is not None), None)
        kinds = {*map(type, texts)}
        if bool in kinds:
            texts = [_WORDS.get(v, v) if isinstance(v, bool) else v for v in texts]
        if dict in kinds or list in kinds:
            self._put_as_written(line, texts)
        if "\\u" in line and any(text and _HALF_A_CHARACTER.search(text) for text in texts):
            return self._malformed(UNDECODABLE)
        return [*texts, None]

    def _put_as_written(self, line: str, texts: list[Any]) -> None:
        """Replace lists and objects by the text that they are in the line."""
        values = self._in_lower_case(json_object.written_values_of(line))
        for n, keys in enumerate(self._keys):
            if isinstance(texts[n], dict | list):
                # A value that is null here was none there.
                texts[n] = next(v for key in keys if (v := values.get(key, "null")) != "null")

    def _in_lower_case(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values, those of keys in another letter case under their lower case too."""
        if values.keys() <= self._exact:
            return values
        lower = ((key.lower(), value) for key, value in values.items())
        return {key: value for key, value in lower if key in self._lower} | values
