"""File sources as values: what a declaration refuses."""

from __future__ import annotations

import pytest

from rivermark.ingest.source.files.file_probe import format_of
from rivermark.model.errors import DeclarationError
from rivermark.sources import FileSource


@pytest.mark.parametrize("folder", ["/etc", "../up", "taxi/../../up", "taxi//rides", "taxi/", ""])
def test_a_folder_outside_the_landing_root_is_refused(folder: str) -> None:
    with pytest.raises(DeclarationError, match="landing folder"):
        FileSource(folder=folder)


@pytest.mark.parametrize("delimiter", ["", ";;", "tab"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    with pytest.raises(DeclarationError, match="exactly one character"):
        FileSource(folder="taxi", delimiter=delimiter)


def test_a_batch_of_no_file_is_refused() -> None:
    with pytest.raises(DeclarationError, match="max_files"):
        FileSource(folder="taxi", max_files=0)


@pytest.mark.parametrize("encoding", ["latin-99", "UTF-16", "utf-32-le", ""])
def test_an_encoding_that_nobody_knows_or_that_cuts_lines_otherwise_is_refused(
    encoding: str,
) -> None:
    with pytest.raises(DeclarationError, match=f"encoding '{encoding}'"):
        FileSource(folder="taxi", encoding=encoding)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.json", "json"), ("a.jsonl.gz", "json"), ("A.CSV", "csv"), ("a.txt", "csv"),
        ("a.parquet", "parquet"), ("a.b.ndjson", "json"), ("a.gz", None), ("a.xml", None),
        ("a", None),
    ],
)  # fmt: skip
def test_the_ending_tells_the_format_where_none_is_declared(name: str, kind: str | None) -> None:
    assert format_of(name, FileSource(folder="taxi", format=None)) == kind
    assert format_of(name, FileSource(folder="taxi", format="csv")) == "csv"
