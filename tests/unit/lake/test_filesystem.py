"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermark.lake.filesystem import replacing, write_file


def test_a_file_is_written_in_one_step_and_replaced_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "state.json"
    write_file(str(path), b"1")
    write_file(f"file://{path}", b"2")

    assert path.read_bytes() == b"2"
    assert [p.name for p in path.parent.iterdir()] == ["state.json"]


def test_a_block_that_fails_leaves_what_was_there_and_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as draft:
            draft.write_text("half")
            assert draft.name.startswith(".")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fail()

    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_block_that_ends_puts_its_file_in_place(tmp_path: Path) -> None:
    path = tmp_path / "pages" / "page.html"
    with replacing(path) as draft:
        draft.write_text("new")
        assert not path.exists()

    assert path.read_text() == "new"
