"""Case B018: state carries the identity of what made it, the same in every process."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.types import StructType

from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import Stream
from rivermark.process.evolution.meaning import meaning_of, meaning_of_function
from rivermark.runtime.checkpoint.generation import open_generation
from rivermark.runtime.checkpoint.identity import (
    EDITION,
    PLAN,
    Identity,
    changes_between,
    check_identity,
    check_plan,
    forget_identity,
    plan_identity,
    read_identity,
)
from rivermark.runtime.supervision.reset import accept_state
from rivermark.settings import Settings
from tests.unit.model.declared import stream

HOURS = stream("test/hours")
RULE = '''
"""A rule."""
import msgspec
from datetime import timedelta
from rivermark.process import Context, KeyedProcess, ValueState

LIMIT = 5
NAMES = {"b": 2, "a": 1}

class Reading(msgspec.Struct):
    sensor: str
    at: int
    value: int

def least(one, other):
    return min(one, other)

class Extremes(KeyedProcess[Reading, str]):
    """Keeps both."""
    key = "sensor"
    time = "at"
    low: ValueState[int]
    high: ValueState[int]

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit

    def on_event(self, event, ctx):
        """Compare."""
        self.low.value = least(self.low.value or event.value, event.value)
        self.high.value = max(self.high.value or event.value, event.value)
        if self.high.value > LIMIT + NAMES["a"]:
            ctx.emit(event.sensor)
'''


def facts(folder: Path, text: str, **parameters: Any) -> dict[str, str]:
    """The facts of a rule whose module has this text."""
    number = len(list(folder.glob("*.py")))
    file = folder / f"rule{number}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("a_rule", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["a_rule"] = module
    spec.loader.exec_module(module)
    make = partial(module.Extremes, **parameters) if parameters else module.Extremes
    return meaning_of(module.Extremes, make)


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (("self.low.value = least", "self.low.value = max"), "code of Extremes.on_event"),
        (("return min(", "return max("), "code of least"),
        (("LIMIT = 5", "LIMIT = 6"), "constant LIMIT"),
        (('{"b": 2, "a": 1}', '{"b": 2, "a": 7}'), "constant NAMES"),
        (('key = "sensor"', 'key = "value"'), "code of Extremes"),
    ],
)
def test_b018_whatever_the_rule_does_otherwise_is_another_identity(
    tmp_path: Path, change: tuple[str, str], by: str
) -> None:
    before, after = facts(tmp_path, RULE), facts(tmp_path, RULE.replace(*change))

    assert any(by in text for text in changes_between(before, after))


WRAPPED = (
    RULE.replace("import msgspec", "import msgspec\nfrom functools import cache, cached_property")
    .replace("def least(", "@cache\ndef least(")
    .replace(
        "    def on_event(",
        "    @cached_property\n    def most(self):\n        return 7\n\n    def on_event(",
    )
)


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (("return min(", "return max("), "code of least"),
        (("return 7", "return 8"), "code of Extremes.most"),
    ],
)
def test_b018_functions_behind_caches_count_too(
    tmp_path: Path, change: tuple[str, str], by: str
) -> None:
    before, after = facts(tmp_path, WRAPPED), facts(tmp_path, WRAPPED.replace(*change))

    assert changes_between(before, after) == [f"{by} changed"]


def test_b018_minimum_and_maximum_swapped_over_the_same_states_are_told(tmp_path: Path) -> None:
    swapped = RULE.replace("self.low.", "self.x.").replace("self.high.", "self.low.")
    swapped = swapped.replace("self.x.", "self.high.")
    changes = changes_between(facts(tmp_path, RULE), facts(tmp_path, swapped))

    assert changes == ["code of Extremes.on_event changed"]


def test_b018_other_parameters_are_told_with_both_values(tmp_path: Path) -> None:
    changes = changes_between(facts(tmp_path, RULE, limit=3), facts(tmp_path, RULE, limit=4))

    assert changes == ["parameters was Extremes(limit=3) and is Extremes(limit=4)"]


@pytest.mark.parametrize(
    "change",
    [
        ('"""Compare."""', '"""Compare the two."""'),
        ("def on_event(self, event, ctx):", "# why\n    def on_event(self, event,  ctx):"),
        ("LIMIT = 5\n", "UNUSED = 9\nLIMIT = 5\n"),
    ],
)
def test_b018_comments_layout_and_what_is_not_used_are_no_change(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    assert facts(tmp_path, RULE) == facts(tmp_path, RULE.replace(*change))


def test_a_record_may_get_fields_and_what_a_schema_says_is_no_meaning(tmp_path: Path) -> None:
    more = RULE.replace("    value: int\n", "    value: int\n    note: str | None = None\n")
    raised = more.replace(
        '    time = "at"\n', '    time = "at"\n    version = 2\n    hold = False\n'
    )

    assert facts(tmp_path, RULE) == facts(tmp_path, more) == facts(tmp_path, raised)


def test_a_base_class_in_another_module_counts_and_what_its_module_imports_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes that raises the version of the class."""
    monkeypatch.syspath_prepend(str(tmp_path))
    base = tmp_path / "a_base.py"

    def of(bound: str, factor: str) -> dict[str, str]:
        for name in ("a_base", "a_helper"):
            sys.modules.pop(name, None)
        (tmp_path / "a_helper.py").write_text(f"FACTOR = {factor}\n")
        base.write_text(
            f"from a_helper import FACTOR\nBOUND = {bound}\n\n"
            "class Bounded:\n    def bound(self):\n        return BOUND * FACTOR\n"
        )
        importlib.invalidate_caches()
        linecache.clearcache()
        text = RULE.replace("import msgspec", "import msgspec\nfrom a_base import Bounded")
        return facts(tmp_path, text.replace("class Extremes(", "class Extremes(Bounded, "))

    first = of("1", "1")
    assert changes_between(first, of("2", "1")) == ["constant BOUND was BOUND = 1 and is BOUND = 2"]
    assert of("1", "7") == first


def test_functions_count_by_their_source_and_what_they_close_over() -> None:
    def scaled(factor: int, function: Callable[[int], int]) -> Any:
        def times(value: int) -> int:
            return function(value) * factor

        return times

    one = meaning_of_function(scaled(2, lambda value: value + 1))

    assert one == meaning_of_function(scaled(2, lambda value: value + 1))
    assert one != meaning_of_function(scaled(3, lambda value: value + 1))
    more = meaning_of_function(lambda value: value + 2)
    assert more != meaning_of_function(lambda value: value + 1)


@pytest.mark.parametrize("edition", [1, 2, 3])
def test_a_checkpoint_of_an_earlier_release_is_accepted_once_with_a_note(
    checkpoint: str, edition: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = Identity({"code of Rule.on_event": "by other rules"}, "shape", edition=edition)
    now = replace(OF_A_RULE, edition=EDITION)
    check_identity(HOURS.name, checkpoint, before)

    with caplog.at_level("INFO"):
        check_identity(HOURS.name, checkpoint, now)
        check_identity(HOURS.name, checkpoint, now)
    assert len([text for text in caplog.messages if "by an earlier release" in text]) == 1
    with pytest.raises(CheckpointIncompatible):
        check_identity(HOURS.name, checkpoint, replace(now, facts={"limit": "2"}))


ALL = """
import json
from assets.topology import TOPOLOGY
from rivermark import Stream
from rivermark.process.spark.build import ProcessBuild
from rivermark.runtime.checkpoint.identity import process_identity
rules = [s for s in TOPOLOGY.streams if isinstance(getattr(s, "build", None), ProcessBuild)]
made = {s.name: process_identity(s.build) for s in rules}
print(json.dumps({name: each.facts for name, each in made.items()}, indent=1))
"""


def test_b018_the_identity_is_the_same_in_processes_that_have_nothing_in_common(
    tmp_path: Path,
) -> None:
    root = Path(__file__).parents[4]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for package in ("assets", "rivermark"):
        (elsewhere / package).symlink_to(root / package)
    told = set()
    for seed, folder in (("1", root), ("2", elsewhere)):
        ran = subprocess.run(
            [sys.executable, "-c", ALL],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(folder)},
            check=True,
        )
        told.add(ran.stdout)

    (text,) = told
    assert text.count("code of") > 10
    assert not any(sign in text for sign in (" at 0x", str(root), str(tmp_path), "unknown"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Settings(home=tmp_path).lake()


@pytest.fixture
def checkpoint(lake: Lake) -> str:
    """Of a stream that has run, and has state."""
    open_generation(lake, HOURS, 2)
    folder = Path(lake.checkpoint(HOURS.name, 0))
    (folder / "state").mkdir(parents=True)
    (folder / "offsets").mkdir()
    (folder / "offsets" / "0").touch()
    return str(folder)


OF_A_RULE = Identity({"code of Rule.on_event": "1"}, "shape")


def test_b018_changed_state_is_refused_with_what_changed_and_three_ways_out(
    checkpoint: str,
) -> None:
    check_identity(HOURS.name, checkpoint, OF_A_RULE)
    check_identity(HOURS.name, checkpoint, OF_A_RULE)

    with pytest.raises(CheckpointIncompatible) as refused:
        check_identity(HOURS.name, checkpoint, replace(OF_A_RULE, facts={"limit": "2"}))
    message = str(refused.value)
    assert checkpoint in message
    assert "undo the change, or start over" in message
    assert "rivermark reset test/hours" in message
    assert "rivermark accept test/hours" in message
    assert "code of Rule.on_event is gone; limit was not there and is 2" in message


def test_b018_a_checkpoint_without_a_record_goes_on_and_has_one_then(checkpoint: str) -> None:
    assert read_identity(checkpoint, HOURS.name) is None
    check_identity(HOURS.name, checkpoint, OF_A_RULE)
    assert read_identity(checkpoint, HOURS.name) == OF_A_RULE


@pytest.mark.parametrize(
    "evolved",
    [replace(OF_A_RULE, facts={}, schema="another"), replace(OF_A_RULE, facts={}, spark="5.0")],
    ids=["a schema that was evolved", "another Spark"],
)
def test_b018_what_cannot_be_compared_is_recorded_anew(checkpoint: str, evolved: Identity) -> None:
    check_identity(HOURS.name, checkpoint, OF_A_RULE)
    check_identity(HOURS.name, checkpoint, evolved)
    assert read_identity(checkpoint, HOURS.name) == evolved


def test_b018_a_stream_without_state_may_be_changed(lake: Lake, checkpoint: str) -> None:
    check_identity(HOURS.name, checkpoint, OF_A_RULE)
    (Path(checkpoint) / "state").rmdir()
    changed = replace(OF_A_RULE, facts={PLAN: "Project"})
    check_identity(HOURS.name, checkpoint, changed)
    assert read_identity(checkpoint, HOURS.name) == changed


def test_b018_who_says_that_the_meaning_is_the_same_goes_on(
    tmp_path: Path, lake: Lake, checkpoint: str
) -> None:
    check_identity(HOURS.name, checkpoint, OF_A_RULE)
    changed = replace(OF_A_RULE, facts={"limit": "2"})

    assert accept_state(Settings(home=tmp_path), HOURS, run_id="r")
    check_identity(HOURS.name, checkpoint, changed)
    assert read_identity(checkpoint, HOURS.name) == changed
    assert forget_identity(lake, HOURS)
    assert not forget_identity(lake, HOURS)


def test_b018_of_a_plan_the_first_line_that_differs_is_told() -> None:
    before = {PLAN: "Aggregate [min(a#0)]\n+- Filter (b#1 > 1)\n"}
    after = {PLAN: "Aggregate [min(a#0)]\n+- Filter (b#1 > 2)\n"}
    assert changes_between(before, after) == [
        "its plan had 'Filter (b#1 > 1)' and has 'Filter (b#1 > 2)'"
    ]


class Planned:
    """In place of a DataFrame and its session: a plan by the columns that were chosen."""

    def __init__(self, spark: FakeSpark, text: str) -> None:
        self.sparkSession = spark
        self.text = text
        analyzed = SimpleNamespace(toString=lambda: self.text)
        self._jdf = SimpleNamespace(
            queryExecution=lambda: SimpleNamespace(analyzed=lambda: analyzed)
        )


class FakeSpark:
    """A session that numbers its expressions as it goes."""

    version = "4.2.0"

    def __init__(self) -> None:
        self.next = 0
        self.settings = {"spark.sql.debug.maxToStringFields": "25"}
        self.conf = SimpleNamespace(get=self.settings.__getitem__, set=self.settings.__setitem__)

    def createDataFrame(self, rows: list[Any], schema: StructType) -> Planned:
        return Planned(self, ", ".join(schema.fieldNames()))

    def plan(self, text: str) -> str:
        """The text with ids, which count up."""
        self.next += 10
        return text.format(a=f"#{self.next}L", b=f"#{self.next + 1}", n=self.next)


def hours_by(spark: FakeSpark, text: str) -> Stream:
    """A stream whose build makes that plan."""

    def build(rows: Any) -> Any:
        return Planned(spark, spark.plan(text) + rows.text)

    return stream("test/hours", build=build)


def planned_by(spark: FakeSpark, text: str, recorded: Identity | None = None) -> Identity:
    return plan_identity(cast(Any, spark), hours_by(spark, text), recorded)


AGGREGATE = "Aggregate [sum(a{a}), max(b{b})]\n+- Filter (a{a} > rand({n})) lambda x_{n}{b}\n"


def test_b018_plans_are_equal_whatever_their_ids_seeds_and_numbered_variables() -> None:
    spark = FakeSpark()
    first, second = planned_by(spark, AGGREGATE), planned_by(spark, AGGREGATE)

    assert first == second
    assert first.facts[PLAN].startswith("Aggregate [sum(a#0), max(b#1)]")
    assert first != planned_by(spark, AGGREGATE.replace("sum(a{a})", "sum(b{b})"))
    assert spark.settings == {"spark.sql.debug.maxToStringFields": "25"}


def test_b018_a_column_that_came_later_changes_no_plan() -> None:
    spark = FakeSpark()
    now = planned_by(spark, AGGREGATE)
    assert now.columns is not None
    [(table, columns)] = now.columns.items()
    earlier = replace(now, columns={table: columns[:-1]})
    text = now.facts[PLAN].removesuffix(f", {columns[-1]}")
    assert text != now.facts[PLAN]

    made = planned_by(spark, AGGREGATE, earlier)
    assert made == replace(earlier, facts={PLAN: text})


def test_what_is_declared_when_the_first_batch_is_made_is_what_made_the_state(
    checkpoint: str,
) -> None:
    spark = FakeSpark()
    first, second = (hours_by(spark, text) for text in (AGGREGATE, AGGREGATE.replace(">", "<")))
    state = Path(checkpoint) / "state"
    state.rmdir()
    check_plan(cast(Any, spark), first, checkpoint)

    # That run was killed before its first batch; the declaration was changed, and makes it now.
    check_plan(cast(Any, spark), second, checkpoint)
    state.mkdir()
    check_plan(cast(Any, spark), second, checkpoint)


def test_a_stream_whose_batches_leave_no_state_is_not_planned_again(checkpoint: str) -> None:
    spark = FakeSpark()
    (Path(checkpoint) / "state").rmdir()
    (Path(checkpoint) / "commits").mkdir()
    (Path(checkpoint) / "commits" / "0").touch()
    check_plan(cast(Any, spark), hours_by(spark, AGGREGATE), checkpoint)
    asked = spark.next

    check_plan(cast(Any, spark), hours_by(spark, AGGREGATE + "+- Project\n"), checkpoint)
    assert spark.next == asked
