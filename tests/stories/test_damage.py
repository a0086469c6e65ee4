"""One file of a lake is damaged at a time: told by name, or without effect. Never other rows.

Seeded, and without a JVM: what Spark does with such files is in tests/spark/runtime.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from rivermark.model.table import Table
from rivermark.monitor.fsck import fsck
from tests.damaged_lake import LONG, RIDES, TOPOLOGY, DamagedLake, flip

pytestmark = pytest.mark.story

SEED: Final = 20261129
COMMITS: Final = 11

Mutation = Callable[[Path, random.Random], None]


def cut(path: Path, dice: random.Random) -> None:
    """The end is gone."""
    content = path.read_bytes()
    path.write_bytes(content[: dice.randrange(1, len(content))])


def cut_at_a_line(path: Path, dice: random.Random) -> None:
    """What is left ends with a line, where there are some."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: max(1, len(lines) - 1)])[: max(1, path.stat().st_size - 1)])


def empty(path: Path, dice: random.Random) -> None:
    """No byte is left, as after a power loss."""
    path.write_bytes(b"")


def zeros(path: Path, dice: random.Random) -> None:
    """As long as it was, of zeros."""
    path.write_bytes(b"\0" * path.stat().st_size)


def delete(path: Path, dice: random.Random) -> None:
    """The file is gone; its checksum file, where there is one, is not."""
    path.unlink()


def duplicate(path: Path, dice: random.Random) -> None:
    """It stands for another file of its kind, or for the one that would come next."""
    others = [p for p in path.parent.glob(f"*{path.suffix}") if p != path and p.is_file()]
    if path.stem.isdigit():
        following = path.with_name(f"{int(path.stem) + 1:0{len(path.stem)}d}{path.suffix}")
        others += [] if following.exists() else [following]
    if others:
        shutil.copyfile(path, dice.choice(sorted(others)))


MUTATIONS: Final[tuple[Mutation, ...]] = (
    *(flip, flip, cut, cut_at_a_line),
    *(empty, zeros, delete, duplicate),
)
KINDS: Final = {
    "entry": "tables/*/*/_delta_log/*[0-9].json",
    "checksum": "tables/*/*/_delta_log/*.crc",
    "table checkpoint": "tables/*/*/_delta_log/*.checkpoint.parquet",
    "hint": "tables/*/*/_delta_log/_last_checkpoint",
    "data": "tables/*/*/*.parquet",
    "offsets, commits": "checkpoints/*/*/*/[oc]*/[0-9]*",
    "metadata": "checkpoints/*/*/*/metadata",
    "generation": "checkpoints/*/*/generation.json",
    "note": "checkpoints/*/*/*/written/*.json",
}


@dataclass(frozen=True)
class Result:
    """What became of a mutation: `kind` of file, by what, and the outcome in a word."""

    seed: int
    kind: str
    mutation: str
    outcome: str
    said: str


def damaged(whole: DamagedLake, home: Path, seed: int) -> Result:
    """Copy the lake, damage one file, let readers read and the stream go on; then put it back."""
    dice = random.Random(SEED + seed)
    shutil.copytree(whole.settings.home, home)
    world = DamagedLake(home, whole.commits)
    lake = home / "lake"
    before = contents(lake)
    kind = dice.choice(sorted(KINDS))
    # Of numbered files mostly the newest: older ones are seldom read.
    files = sorted(lake.glob(KINDS[kind]), key=lambda p: (p.name[:20].rjust(20, "0"), p))
    path = dice.choice(files[-4:] if dice.random() < 0.6 else files)
    mutation = dice.choice(MUTATIONS)
    mutation(path, dice)
    names = {p for p in before.keys() | contents(lake).keys() if before.get(p) != content_of(p)}
    walked = fsck(world.settings, TOPOLOGY)

    def result(outcome: str, said: str = "") -> Result:
        return Result(seed, kind, mutation.__name__, outcome, f"{path.relative_to(lake)} {said}")

    try:
        live_on(world)
    except OtherRows as other:
        return result("silent", str(other))
    except Exception as refused:
        said = f"{type(refused).__name__}: {refused}"
        if not any(str(p) in said for p in names):
            return result("unnamed", said)
        if not any(str(p) in f.fault.path + f.fault.problem for f in walked.faults for p in names):
            return result("not seen by fsck", said)
        for p in names:
            p.unlink(missing_ok=True)
            if p in before:
                p.write_bytes(before[p])
        try:
            live_on(world)
        except Exception as after:
            return result("not healed", f"{type(after).__name__}: {after}")
        return result("refused", said)
    return result("equal")


def live_on(world: DamagedLake) -> None:
    """Readers read, the stream starts again, new rows come, readers read."""
    for table in (RIDES, LONG):
        check_rows(world, table)
    world.run()
    world.feed()
    world.run()
    for table in (RIDES, LONG):
        check_rows(world, table)


class OtherRows(Exception):
    """Readers have other rows than were sent, and nothing was said."""


def check_rows(world: DamagedLake, table: Table) -> None:
    """Raise OtherRows where the table does not hold what was sent."""
    rows, expected = world.rows(table), world.expected()
    if rows != expected:
        raise OtherRows(f"{table.name}: {len(rows)} rows instead of {len(expected)}")


def contents(root: Path) -> dict[Path, bytes]:
    """Every file below a folder."""
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}


def content_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> DamagedLake:
    world = DamagedLake(tmp_path_factory.mktemp("whole"))
    world.grow(COMMITS)
    check_rows(world, RIDES)
    check_rows(world, LONG)
    assert not fsck(world.settings, TOPOLOGY).findings
    return world


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(40), id="40"),
        pytest.param(range(40, 500), id="460 more", marks=pytest.mark.slow),
    ],
)
def test_one_damaged_file_is_named_or_without_effect(
    whole: DamagedLake,
    tmp_path: Path,
    seeds: range,
    record_property: Callable[[str, object], None],
) -> None:
    results = []
    for seed in seeds:
        home = tmp_path / str(seed)
        results.append(damaged(whole, home, seed))
        shutil.rmtree(home)
    report = Counter((r.kind, r.outcome) for r in results)
    for (kind, outcome), number in sorted(report.items()):
        record_property(f"{kind}, {outcome}", number)

    bad = [r for r in results if r.outcome not in ("equal", "refused")]
    assert not bad, "\n".join(f"{r.seed} {r.kind} {r.mutation} {r.outcome}: {r.said}" for r in bad)
    refused = sum(r.outcome == "refused" for r in results)
    assert refused > len(results) // 4, "a harness that damages nothing proves nothing"


Action = dict[str, Any]


def sized(by: int) -> Callable[[Action], None]:
    """The log has another size of a data file than it has."""

    def edit(action: Action) -> None:
        if "add" in action:
            action["add"]["size"] += by

    return edit


def moved(path: Callable[[str], str]) -> Callable[[Action], None]:
    """The log has another name of a data file, as after a copy that folded letter case."""

    def edit(action: Action) -> None:
        if "add" in action:
            action["add"]["path"] = path(action["add"]["path"])

    return edit


def dated(years: int) -> Callable[[Action], None]:
    """The clock of the writer was wrong."""

    def edit(action: Action) -> None:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] += years * 365 * 24 * 3600 * 1000

    return edit


def counted(action: Action) -> None:
    """The log counts fewer rows than a data file holds."""
    if "add" in action:
        stats = json.loads(action["add"]["stats"])
        action["add"]["stats"] = json.dumps(stats | {"numRecords": stats["numRecords"] - 1})


def bounded(action: Action) -> None:
    """Readers that go by bounds pass over rows of a data file."""
    if "add" in action:
        stats = json.loads(action["add"]["stats"])
        stats["maxValues"]["id"] = stats["minValues"]["id"]
        action["add"]["stats"] = json.dumps(stats)


def copied(action: Action) -> None:
    """A commit says of its files that they bring nothing new."""
    if "add" in action:
        action["add"]["dataChange"] = False


def partitioned(action: Action) -> None:
    """A column is one of folders now: it would be empty in every row."""
    if "metaData" in action:
        action["metaData"]["partitionColumns"] = ["name"]


def renamed(action: Action) -> None:
    """A column has another name: it would be empty in every row."""
    if "metaData" in action:
        schema = action["metaData"]["schemaString"]
        action["metaData"]["schemaString"] = schema.replace('"name":"name"', '"name":"nama"')


def another(action: Action) -> None:
    """It is another table, of which a stream has read nothing."""
    if "metaData" in action:
        action["metaData"]["id"] = "395ada9a-8245-4dcd-b6a6-8e53e4bfe8de"


EDITS: Final[dict[str, Callable[[Action], None]]] = {
    "larger": sized(7),
    "smaller": sized(-7),
    "in capitals": moved(str.upper),
    "elsewhere": moved(lambda path: f"elsewhere/{path}"),
    "in a year": dated(1),
    "twenty years ago": dated(-20),
    "fewer rows": counted,
    "narrower bounds": bounded,
    "a copy": copied,
    "by partitions": partitioned,
    "a renamed column": renamed,
    "another table": another,
}


@pytest.mark.parametrize("checksums", ["kept", "lost"])
def test_an_entry_that_says_something_else_is_named_or_without_effect(
    whole: DamagedLake, tmp_path: Path, checksums: str
) -> None:
    """Well-formed, so that only other files can say that it is not what was written.

    Without any `.crc`, as in a copy that left those out, what is left to compare with is the data
    file and the table checkpoint.
    """
    outcomes, told = {}, set()
    for name, edit in EDITS.items():
        home = tmp_path / name
        shutil.copytree(whole.settings.home, home)
        world = DamagedLake(home, whole.commits)
        log = home / "lake" / "tables" / RIDES.name / "_delta_log"
        entries = sorted(log.glob("*[0-9].json"))
        path = entries[0 if edit in (partitioned, renamed, another) else -1]
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        before = json.dumps(actions)
        for action in actions:
            edit(action)
        assert json.dumps(actions) != before
        path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        for sums in log.glob("*.crc") if checksums == "lost" else ():
            sums.unlink()
        walked = fsck(world.settings, TOPOLOGY).faults
        if walked:
            told.add(name)
        try:
            live_on(world)
            outcomes[name] = "equal"
        except OtherRows as other:
            outcomes[name] = f"silent: {other}"
        except Exception as error:
            files = {path, *(Path(finding.fault.path) for finding in walked)}
            named = any(str(file) in str(error) for file in files)
            outcomes[name] = "refused" if named and walked else f"unnamed: {error}"
        shutil.rmtree(home)

    assert {o for o in outcomes.values() if o not in ("equal", "refused")} == set(), outcomes
    refused = {name for name, outcome in outcomes.items() if outcome == "refused"}
    # No reader here goes by the sizes of the log; Spark does.
    assert told >= {"larger", "smaller", "fewer rows", "narrower bounds"}
    assert refused >= {"in capitals", "elsewhere"}
    sized_or_counted = {"larger", "smaller", "fewer rows", "a copy", "in a year"}
    assert checksums == "lost" or refused >= sized_or_counted
