"""A damaged file of the state: named with the way out, or without effect. Never other windows."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.model.errors import StreamFailed
from rivermark.monitor.fsck import fsck
from rivermark.settings import Settings
from tests.damaged_lake import flip
from tests.spark.helpers.sensors import READINGS, admit, reading, rows, run, windows

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED: Final = 20261129
KINDS: Final = {
    "heap": ("*.delta", "*.snapshot", "_metadata/*"),
    "rocksdb": ("*.changelog", "*.zip", "SSTs/*.sst", "_metadata/*"),
}


def cut(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: dice.randrange(len(content))])


def delete(path: Path, dice: random.Random) -> None:
    path.unlink()


DAMAGES: Final[tuple[Callable[[Path, random.Random], None], ...]] = (flip, cut, delete)


@pytest.mark.parametrize("store", KINDS)
def test_damaged_state_is_named_or_without_effect(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
    store: str,
    record_property: Callable[[str, object], None],
) -> None:
    stream = windows(state_store=store)
    for minute in range(6):
        admit(settings, *(reading(minute, sensor=f"s{n}") for n in range(8)))
        run(spark, settings, stream)
    whole = tmp_path / "whole"
    shutil.copytree(settings.home, whole)
    admit(settings, *(reading(30, sensor=f"s{n}") for n in range(8)))
    run(spark, settings, stream)
    expected = rows(spark, settings, stream.tables[0])
    assert len(expected) == 16

    dice = random.Random(SEED)
    outcomes: dict[str, str] = {}
    for kind in KINDS[store]:
        for damage in DAMAGES:
            # Aside: what tends the states of the last run may still write there, now and then.
            settings.home.rename(mkdtemp(dir=tmp_path))
            shutil.copytree(whole, settings.home, dirs_exist_ok=True)
            state = Path(settings.lake().checkpoint(stream.name, 0)) / "state"
            files = sorted(p for p in state.rglob(kind) if p.is_file() and p.name[0] != ".")
            if not files:
                continue
            path = dice.choice(files)
            with_sidecar = dice.random() < 0.5
            if not with_sidecar:
                sidecar_of(path).unlink(missing_ok=True)
            damage(path, dice)
            trial = f"{kind} {damage.__name__} {'kept' if with_sidecar else 'lost'} {path.name}"
            walked = {f.fault.path for f in fsck(settings, Topology([READINGS, stream])).faults}
            admit(settings, *(reading(30, sensor=f"s{n}") for n in range(8)))
            try:
                run(spark, settings, stream)
                same = rows(spark, settings, stream.tables[0]) == expected
                outcomes[trial] = "equal" if same else "silent"
            except StreamFailed as refused:
                named = f"{state}" in str(refused) and "rivermark reset" in str(refused)
                outcomes[trial] = "refused" if named else f"unnamed: {refused}"
            if outcomes[trial] == "refused" and str(path) not in walked and with_sidecar:
                outcomes[trial] = "not seen by fsck"
    for trial, outcome in outcomes.items():
        record_property(trial, outcome)

    assert {o for o in outcomes.values() if o not in ("equal", "refused")} == set(), outcomes
    assert "refused" in outcomes.values()
