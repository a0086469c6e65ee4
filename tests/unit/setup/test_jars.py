import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rivermark.setup import jars
from rivermark.setup.ivy import Module, Problem

STORAGE = Module.parse("io.delta:delta-storage:4.4.0")
WHOLE = b"the bytes that the publisher signed"


class Repository:
    """Stands in for Ivy: hands out the same bytes for every module, and counts."""

    def __init__(self) -> None:
        self.bytes = WHOLE
        self.visits = 0

    def retrieve(self, modules: Iterable[Module], scratch: Path, **_: Any) -> Path:
        self.visits += 1
        folder = scratch / "jars"
        folder.mkdir()
        for module in modules:
            (folder / module.file).write_bytes(self.bytes)
        return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    repository = Repository()
    monkeypatch.setattr(jars, "retrieve", repository.retrieve)
    monkeypatch.setattr(jars, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    digest = hashlib.sha256(WHOLE).hexdigest()
    (tmp_path / "delta.lock").write_text(f"# a comment\n{digest}  {':'.join(STORAGE)}\n")
    return repository


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "jars" / "delta" / STORAGE.file


def test_a_set_is_fetched_once(repository: Repository, kept: Path) -> None:
    jars.fetch("delta")
    jars.fetch("delta")

    assert kept.read_bytes() == WHOLE
    assert repository.visits == 1


def test_a_cut_download_is_refused_and_not_kept(repository: Repository, kept: Path) -> None:
    repository.bytes = WHOLE[:10]

    with pytest.raises(Problem, match=r"delta-storage-4\.4\.0\.jar has SHA-256 .* the lock says"):
        jars.fetch("delta")

    assert not kept.exists()
    assert [path for path in (kept.parents[2]).rglob("*") if path.is_file()] == []


def test_a_jar_that_was_damaged_since_is_fetched_again(repository: Repository, kept: Path) -> None:
    jars.fetch("delta")
    kept.write_bytes(b"")

    jars.fetch("delta")

    assert kept.read_bytes() == WHOLE


def test_a_jar_that_the_lock_does_not_know_is_removed(repository: Repository, kept: Path) -> None:
    jars.fetch("delta")
    stranger = kept.with_name("stranger-1.0.jar")
    stranger.touch()

    jars.fetch("delta")

    assert [path.name for path in kept.parent.iterdir()] == [STORAGE.file]


def test_an_unknown_set_is_refused_with_the_known_ones(repository: Repository) -> None:
    with pytest.raises(Problem, match="there is no set of JARs named 'kafak'; choose one of delta"):
        jars.fetch("kafak")


@pytest.mark.parametrize("text", ["a:b", "a:b:c:d", "a:b:../c", "a:b:c d", ""])
def test_coordinates_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(Problem, match="is not ORG:NAME:VERSION"):
        Module.parse(text)


def test_a_folder_stands_for_the_network_and_is_checked_alike(
    repository: Repository, kept: Path, tmp_path: Path
) -> None:
    source = tmp_path / "carried"
    source.mkdir()
    with pytest.raises(Problem, match=r"delta-storage-4\.4\.0\.jar is missing"):
        jars.fetch("delta", source)
    (source / STORAGE.file).write_bytes(b"another")
    with pytest.raises(Problem, match="the lock says"):
        jars.fetch("delta", source)
    assert not kept.exists()

    (source / STORAGE.file).write_bytes(WHOLE)
    jars.fetch("delta", source)

    assert kept.read_bytes() == WHOLE
    assert repository.visits == 0


def test_the_cache_is_the_one_named_or_the_checkout_s_or_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVERMARK_CACHE", str(tmp_path))
    assert jars.cache_folder() == tmp_path

    monkeypatch.delenv("RIVERMARK_CACHE")
    assert jars.cache_folder() == Path(__file__).parents[3] / ".cache"
    monkeypatch.setattr(
        jars, "__file__", str(tmp_path / "site" / "rivermark" / "setup" / "jars.py")
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert jars.cache_folder() == tmp_path / "user" / "rivermark"
