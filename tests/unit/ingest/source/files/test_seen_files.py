"""Files that were read already, many of them."""

from __future__ import annotations

import pytest

from rivermark.ingest.source.files.reader import SeenFiles


def test_every_name_is_known_with_its_size_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.ingest.source.files.reader.RECENT", 7)
    known = SeenFiles((f"{n}.json", n) for n in range(100))
    known.add("\udcff.json", 3)

    assert len(known) == 101
    assert [known.size_of(f"{n}.json") for n in range(100)] == [*range(100)]
    assert "\udcff.json" in known
    assert known.size_of("100.json") is None
    assert "100.json" not in known


def test_names_whose_digests_begin_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.ingest.source.files.reader.RECENT", 2)
    monkeypatch.setattr("rivermark.ingest.source.files.reader.digest", lambda name: (1, ord(name)))
    known = SeenFiles([("a", 1), ("b", 2), ("c", 3), ("d", 4)])

    assert [known.size_of(name) for name in "abcde"] == [1, 2, 3, 4, None]
