"""Which split ends the engine is found out over several starts, each of which may die (N040)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rivermark.ingest.attempts import DEATHS, Attempts
from rivermark.model.source import Split

BATCH = 7


class DeathError(Exception):
    """Stands for the end of a process: what comes after it is a new one."""


def splits(names: str) -> list[Split]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [Split(name=n, path=n, size=1, modified_at=at, format="json") for n in names]


def start(path: Path, names: str, deadly: str, batch: int = BATCH) -> dict[str, str]:
    """One start of a process that reads the batch."""

    def read(*names: str) -> None:
        if set(names) & set(deadly):
            raise DeathError

    attempts = Attempts(str(path / "attempts.json"))
    unreadable: dict[str, str] = {}
    if attempts.begin(batch) >= DEATHS:
        unreadable = attempts.isolate(splits(names), lambda split: read(split.name))
    read(*(n for n in names if n not in unreadable))
    return unreadable


def starts(path: Path, names: str, deadly: str) -> Iterator[dict[str, str] | None]:
    for _ in range(20):
        try:
            yield start(path, names, deadly)
        except DeathError:
            yield None


@pytest.mark.parametrize(
    ("names", "deadly", "deaths"),
    [("abcdefgh", "e", 4), ("abcdefgh", "ah", 6), ("a", "a", 4), ("ab", "ab", 6), ("abc", "", 0)],
)
def test_n040_the_deadly_splits_are_isolated_and_no_other(
    tmp_path: Path, names: str, deadly: str, deaths: int
) -> None:
    results = starts(tmp_path, names, deadly)
    for _ in range(deaths):
        assert next(results) is None
    found = next(results)
    assert found is not None
    assert sorted(found) == sorted(deadly)
    assert all(reason.startswith("file_ends_the_engine: ") for reason in found.values())


def test_what_died_beside_a_neighbour_is_cleared_when_it_is_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "attempts.json")
    for _ in range(DEATHS):
        Attempts(path).begin(BATCH)
    neighbour = Attempts(path)
    neighbour.begin(BATCH)

    def die(_: Split) -> None:
        raise DeathError

    with pytest.raises(DeathError):
        neighbour.isolate(splits("ab"), die)
    again = Attempts(path)
    assert again.begin(BATCH) >= DEATHS
    assert again.isolate(splits("ab"), lambda _: None) == {}


def test_a_batch_that_fails_with_an_error_is_not_suspected(tmp_path: Path) -> None:
    for _ in range(5):
        attempts = Attempts(str(tmp_path / "attempts.json"))
        assert attempts.begin(BATCH) == 0
        attempts.give_up()


def test_a_batch_that_came_through_counts_for_no_other(tmp_path: Path) -> None:
    path = str(tmp_path / "attempts.json")
    attempts = Attempts(path)
    assert [attempts.begin(batch) for batch in (1, 2, 3)] == [0, 0, 0]
    # The next process dies over the batch that it begins with, and so do those after it.
    assert [Attempts(path).begin(3) for _ in range(2)] == [1, 2]
    assert Attempts(path).begin(4) == 0


def test_a_batch_of_another_generation_is_another(tmp_path: Path) -> None:
    path = str(tmp_path / "attempts.json")
    for _ in range(DEATHS + 1):
        Attempts(path, 1).begin(BATCH)
    after_a_reset = Attempts(path, 2)
    assert after_a_reset.begin(BATCH) == 0
    assert Attempts(path, 2).begin(BATCH) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"batch": 7}', b'{"_": 1}', b"\xff"])
def test_what_a_power_failure_left_of_the_attempts_stops_nothing(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "attempts.json"
    path.write_bytes(content)
    assert [Attempts(str(path)).begin(BATCH) for _ in range(2)] == [0, 1]


def test_batches_that_die_together_and_not_alone_are_read_alone_at_each_start(
    tmp_path: Path,
) -> None:
    attempts = Attempts(str(tmp_path / "attempts.json"))
    for deaths in range(3):
        assert Attempts(attempts.path).begin(BATCH) == deaths
    assert attempts.begin(BATCH) == 3
    read: list[str] = []
    assert attempts.isolate(splits("ab"), lambda split: read.append(split.name)) == {}
    assert read == ["a", "b"]
    again = Attempts(attempts.path)
    again.begin(BATCH)
    assert again.isolate(splits("ab"), lambda split: read.append(split.name)) == {}
    assert read == ["a", "b"]
