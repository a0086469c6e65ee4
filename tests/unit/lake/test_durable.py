"""Whenever the power fails: acknowledged rows are there, and no half of a commit is.

A model of a disk: a file has the content of its last sync and nothing before, a folder the names of
its last sync, or at the worst all that it was given since.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake import durable
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.checkpoint import make_checkpoint
from rivermark.lake.delta import dataset_of
from rivermark.lake.filesystem import replacing, write_file
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.schema import create_table
from rivermark.settings import Settings
from tests.unit.lake.conftest import RIDES, rides
from tests.unit.lake.test_batch_writer import writer


class Disk:
    """What of a folder is on the disk; `check` is called with each state that could be found."""

    def __init__(self, root: Path, image: Path) -> None:
        self.root, self.image = root, image
        self.contents: dict[int, bytes] = {}
        self.names: dict[Path, dict[str, int]] = {}
        self.check: Callable[[Path], None] | None = None
        self.failures = 0
        self._lock = threading.RLock()

    def sync(self, path: str | Path) -> None:
        """Take up a file's content or a folder's names."""
        place = Path(path)
        with self._lock:  # Several files are synced at a time, in any order.
            if place.is_dir():
                self.names[place] = {child.name: child.stat().st_ino for child in place.iterdir()}
            elif place.exists():
                self.contents[place.stat().st_ino] = place.read_bytes()
            self.fail()

    def fail(self) -> None:
        """Look at what is left, if the power fails now."""
        if self.check is None:
            return
        for early in (False, True):
            self.failures += 1
            image = self.image / str(self.failures)
            self._restore(self.root, image, early)
            self.check(image)

    def _restore(self, folder: Path, image: Path, early: bool) -> None:
        image.mkdir(parents=True)
        for child in folder.iterdir():
            if not early and child.name not in self.names.get(folder, {}):
                continue
            if child.is_dir():
                self._restore(child, image / child.name, early)
            else:
                content = self.contents.get(child.stat().st_ino, b"")
                (image / child.name).write_bytes(content)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk below which `lake` lies, on which syncing is needed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = Disk(folder, tmp_path / "after")
    monkeypatch.setattr(durable, "_sync", made.sync)
    monkeypatch.setattr(durable._Switch, "on", True)  # Put back afterwards.
    link, replace = os.link, Path.replace

    def linked(*names: Any) -> None:
        link(*names)
        made.fail()

    def replaced(source: Path, target: Path) -> Path:
        result = replace(source, target)
        made.fail()
        return result

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(Path, "replace", replaced)
    return made


def held(image: Path) -> list[int]:
    """The rides of a lake that came back."""
    table = DeltaTable(Lake(str(image)).path(RIDES))
    return sorted(dataset_of(table).to_table()["id"].to_pylist())


def test_an_acknowledged_append_is_there_and_none_is_by_half(disk: Disk) -> None:
    lake = Lake(str(disk.root))
    create_table(lake, RIDES)
    committer = DeltaCommitter(lake.path(RIDES))
    acknowledged: list[int] = []

    def check(image: Path) -> None:
        # The batch under way is there or not.
        assert held(image) in (acknowledged, [*acknowledged, len(acknowledged)])

    disk.check = check
    for n in range(4):
        assert committer.append(rides(n), {})
        acknowledged.append(n)
        disk.fail()
    assert disk.failures > 40

    disk.check = None
    durable.set_durable(on=False)
    assert committer.append(rides(4), {})
    disk.check = lambda image: _equal(held(image), [0, 1, 2, 3])
    disk.fail()  # Without syncing it is gone, and the model sees it.


def test_a_table_checkpoint_is_there_whole_or_not_at_all(disk: Disk) -> None:
    lake = Lake(str(disk.root))
    create_table(lake, RIDES)
    path = lake.path(RIDES)
    committer = DeltaCommitter(path)
    for n in range(3):
        assert committer.append(rides(n), {})

    disk.check = lambda image: _equal(held(image), [0, 1, 2])
    make_checkpoint(path)
    disk.fail()
    assert CommitLog(path).checkpoints() == [3]
    disk.check = None
    assert committer.append(rides(3), {})
    disk.check = lambda image: _equal(held(image), [0, 1, 2, 3])
    make_checkpoint(path)
    Path(path, "_delta_log", f"{1:020d}.json").unlink()
    disk.fail()
    assert not list(Path(path).glob("_checkpoint*"))


@pytest.mark.parametrize("by", ["delta-rs", "a checkpoint each"])
def test_commits_of_the_libraries_are_synced_before_they_are_acknowledged(
    disk: Disk, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(disk.root))
    create_table(lake, RIDES)
    if by == "delta-rs":
        monkeypatch.setattr(DeltaCommitter, "append", lambda *_: False)
    else:
        with commit_lock(lake.path(RIDES)):
            DeltaTable(lake.path(RIDES)).alter.set_table_properties(
                {"delta.checkpointInterval": "1"}
            )
    table_writer: TableWriter = writer(lake)
    for n in range(3):
        table_writer.append_once(rides(n), n)
        disk.check = lambda image, n=n: _equal(held(image), [*range(n + 1)])
        disk.fail()
        disk.check = None


@pytest.mark.parametrize("brace", ["{", "{ "], ids=["compact", "with blanks"])
def test_commits_of_others_are_synced_with_ours_upon_them(disk: Disk, brace: str) -> None:
    lake = Lake(str(disk.root))
    create_table(lake, RIDES)
    committer = DeltaCommitter(lake.path(RIDES))
    assert committer.append(rides(0), {})
    write_deltalake(lake.path(RIDES), rides(1), mode="append")  # Under no lock of ours.
    entry = Path(lake.path(RIDES), "_delta_log", f"{2:020d}.json")
    lines = entry.read_text().splitlines()
    entry.write_text("".join(f"{line.replace('{', brace, 1)}\n" for line in lines))
    assert committer.append(rides(2), {})

    disk.check = lambda image: _equal(held(image), [0, 1, 2])
    disk.fail()


@pytest.mark.parametrize("how", ["write_file", "replacing"])
def test_a_file_has_its_old_content_or_the_new(disk: Disk, how: str) -> None:
    file = disk.root / "generation.json"
    seen = set()

    def write(content: bytes) -> None:
        if how == "write_file":
            write_file(str(file), content)
        else:
            with replacing(file) as draft:
                draft.write_bytes(content)

    write(b"old")
    disk.check = lambda image: seen.add((image / file.name).read_bytes())
    write(b"new")
    disk.fail()
    assert seen == {b"old", b"new"}
    assert (disk.image / str(disk.failures) / file.name).read_bytes() == b"new"


def test_a_setting_trades_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str | Path] = []
    monkeypatch.setattr(durable, "_sync", synced.append)
    monkeypatch.setattr(durable._Switch, "on", True)
    for value in ("false", "true"):
        monkeypatch.setenv("RIVERMARK_DURABLE", value)
        lake = Settings(home=tmp_path / value).lake()
        create_table(lake, RIDES)
        assert DeltaCommitter(lake.path(RIDES)).append(rides(1), {})
        assert bool(synced) == (value == "true")


def _equal(rows: list[int], wanted: list[int]) -> None:
    assert rows == wanted
