"""Case B018: state carries the identity of what made it, the same in every process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
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
from rivermark.process.evolution.meaning import Meaning, meaning_of, meaning_of_function
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
    return meaning_of(module.Extremes, make).facts


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (("self.low.value = least", "self.low.value = max"), "code of Extremes.on_event"),
        (("return min(", "return max("), "code of least"),
        (("LIMIT = 5", "LIMIT = 6"), "constant LIMIT"),
        (('{"b": 2, "a": 1}', '{"b": 2, "a": 7}'), "constant NAMES"),
        (('key = "sensor"', 'key = "value"'), "Extremes.key"),
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
        ("def on_event(self, event, ctx):", "# why\n    def on_event(self, event: Reading, ctx):"),
        ('{"b": 2, "a": 1}', '{"a": 1, "b": 2}'),
        ("LIMIT = 5\n", "UNUSED = 9\nLIMIT = 5\n"),
    ],
)
def test_b018_comments_layout_and_what_is_not_used_are_no_change(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    assert facts(tmp_path, RULE) == facts(tmp_path, RULE.replace(*change))


TOOLS = """
import operator
import re
from dataclasses import dataclass
from enum import Enum
from functools import partial
from zoneinfo import ZoneInfo
import msgspec
from rivermark.process import KeyedProcess, ValueState

class Level(Enum):
    HIGH = 5

@dataclass(frozen=True, slots=True)
class Limits:
    low: int
    high: int = 9

    def holds(self, value):
        return self.low < value < self.high

class Above:
    def __init__(self, limit):
        self.limit = limit

    def holds(self, value):
        return value > self.limit

class Alert(msgspec.Struct):
    sensor: str
    level: int = 1

limits = Limits(3)
thresholds = {"a": 5}
PATTERN = re.compile("[a-z]+")
choose = max
scale = partial(pow, 2)
ZONE = ZoneInfo("Europe/Berlin")
PAIR, OTHER = 1, 2

class Extremes(KeyedProcess[Alert, str]):
    key = "sensor"
    low: ValueState[int]
    _floor = 4
    first, second = 1, 2

    class Helper:
        def most(self):
            return 7

    def __init__(self, rule=None):
        self.rule = rule

    def on_event(self, event, ctx):
        least = choose(self.low.value, event.level)
        values = [value for value in range(least) if value]
        if limits.holds(least) and PATTERN.match(event.sensor) and thresholds["a"]:
            scale(3)
            ZONE.utcoffset(None)
            ctx.emit(Alert(event.sensor, len(values) + PAIR + self._floor))
"""


@pytest.mark.parametrize(
    "change",
    [
        ("limits = Limits(3)", "limits = Limits(4)"),
        ("high: int = 9", "high: int = 8"),
        ("self.low < value < self.high", "self.low <= value < self.high"),
        ('thresholds = {"a": 5}', 'thresholds = {"a": 6}'),
        ("[a-z]+", "[a-y]+"),
        ("choose = max", "choose = min"),
        ("partial(pow, 2)", "partial(pow, 3)"),
        ("Europe/Berlin", "Europe/Lisbon"),
        ("PAIR, OTHER = 1, 2", "PAIR, OTHER = 3, 2"),
        ("_floor = 4", "_floor = 5"),
        ("first, second = 1, 2", "first, second = 2, 1"),
        ("return 7", "return 8"),
        ("level: int = 1", "level: int = 2"),
        ("if value]", "if not value]"),
    ],
)
def test_whatever_the_code_uses_counts(tmp_path: Path, change: tuple[str, str]) -> None:
    before, after = facts(tmp_path, TOOLS), facts(tmp_path, TOOLS.replace(*change))

    assert changes_between(before, after), change


@pytest.mark.parametrize(
    "change",
    [
        ("least", "smallest"),
        ("value for value in range(least) if value", "each for each in range(least) if each"),
        ("values = [", "values: list[int] = ["),
        ("        least =", "        ...\n        least ="),
        ("level: int = 1", "level: int = 1\n    note: str | None = None"),
        ("import operator\n", "import logging\nimport operator\nLOG = logging.getLogger('x')\n"),
    ],
)
def test_names_of_variables_annotations_and_new_fields_are_no_change(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    before, after = facts(tmp_path, TOOLS), facts(tmp_path, TOOLS.replace(*change))

    assert changes_between(before, after) == []


MATCHING = """
def rule(event):
    try:
        match event:
            case {"level": int() as level, **others}:
                return level, others
            case [first, *rest]:
                return first, rest
    except ValueError as error:
        return error
"""


@pytest.mark.parametrize("name", ["level", "others", "first", "rest", "error"])
def test_names_that_patterns_and_handlers_set_are_no_change(tmp_path: Path, name: str) -> None:
    def meaning(text: str) -> dict[str, str]:
        facts(tmp_path, TOOLS + text)
        return meaning_of_function(sys.modules["a_rule"].rule).facts

    before = meaning(MATCHING)

    assert meaning(re.sub(rf'(?<!"){name}', "renamed", MATCHING)) == before
    assert meaning(MATCHING.replace("return level, others", "return others, level")) != before


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("min", "max"),
        ("operator.itemgetter(1)", "operator.itemgetter(2)"),
        ("ZoneInfo('UTC')", "ZoneInfo('Asia/Tokyo')"),
        ("re.compile('a')", "re.compile('a', re.I)"),
        ("Limits(1)", "Limits(2)"),
        ("Limits(1).holds", "Limits(2).holds"),
        ("Above(1).holds", "Limits(1).holds"),
        ("Above(1)", "Above(2)"),
        ("lambda value: value > 1", "lambda value: value > 2"),
    ],
)
def test_a_parameter_of_any_kind_counts(tmp_path: Path, was: str, now: str) -> None:
    def made_with(rule: str) -> dict[str, str]:
        text = TOOLS + f"\nmake = partial(Extremes, rule={rule})\n"
        facts(tmp_path, text)
        module = sys.modules["a_rule"]
        return meaning_of(module.Extremes, module.make).facts

    assert changes_between(made_with(was), made_with(now))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("Above(1)", ("value > self.limit", "value >= self.limit")),
        ("Above", ("value > self.limit", "value >= self.limit")),
        ("Above(1).holds", ("value > self.limit", "value >= self.limit")),
        ("Level.HIGH", ("HIGH = 5", "HIGH = 7")),
    ],
)
def test_the_code_behind_a_parameter_counts(
    tmp_path: Path, rule: str, change: tuple[str, str]
) -> None:
    def made_of(text: str) -> dict[str, str]:
        facts(tmp_path, text + f"\nmake = partial(Extremes, rule={rule})\n")
        module = sys.modules["a_rule"]
        return meaning_of(module.Extremes, module.make).facts

    assert changes_between(made_of(TOOLS), made_of(TOOLS.replace(*change)))


def test_constants_of_one_name_in_two_modules_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    told = []
    for number, (one, two) in enumerate(((5, 7), (7, 5))):
        package = tmp_path / f"rules{number}"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "config.py").write_text("limits = {'a': 1}\n")
        (package / "other.py").write_text(
            f"from .config import limits as bounds\nLIMIT = {two}\n"
            "def more(value):\n    return value > LIMIT and bounds\n"
        )
        (package / "rule.py").write_text(
            f"from rules{number}.other import more\nLIMIT = {one}\n"
            "def rule(value):\n    return more(value) and value < LIMIT\n"
        )
        rule = importlib.import_module(f"rules{number}.rule").rule
        told.append(meaning_of_function(rule).facts)

    assert changes_between(*told) == ["constant LIMIT was 7, 5 and is 5, 7"]
    assert told[0]["constant limits"] == "{'a': 1}"


HELPED = """
import shared_tools.numbers as numbers
from shared_tools.numbers import Scale, clip

LIMIT = 5

def least(one, other):
    return min(one, other)

def most(one, other):
    return max(one, other)

def again(value):
    return value if value < LIMIT else again(value - 1)

def rule(value, scale=Scale(2)):
    from shared_tools.later import late

    def half(number):
        return number // 2

    small = numbers.smallest(least(value, 3), most(value, 7))
    return clip(half(small)) + again(value) + late(value) + scale.of(value)
"""
NUMBERS = """
from .deeper import deepest

class Scale:
    def __init__(self, factor):
        self.factor = factor

    def of(self, value):
        return value * self.factor

def clip(value):
    return deepest(value)

def smallest(one, other):
    return min(one, other)
"""
DEEPER = """
def deepest(value):
    return value + 1
"""
LATER = """
def late(value):
    return value + 2
"""


@pytest.fixture
def helped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Meaning]:
    """The meaning of a rule that is helped by another package, after changes of its text."""

    def meaning(*changes: tuple[str, str]) -> Meaning:
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        texts = {
            "the_rules/rule": HELPED,
            "shared_tools/numbers": NUMBERS,
            "shared_tools/deeper": DEEPER,
            "shared_tools/later": LATER,
        }
        for name, text in texts.items():
            for was, now in changes:
                text = re.sub(was, now, text)
            file = folder / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_name("__init__.py").touch()
            file.write_text(text)
        for name in [n for n in sys.modules if n.startswith(("the_rules", "shared_tools"))]:
            monkeypatch.delitem(sys.modules, name)
        with monkeypatch.context() as path:
            path.syspath_prepend(folder)
            return meaning_of_function(importlib.import_module("the_rules.rule").rule)

    return meaning


@pytest.mark.parametrize(
    "change",
    [
        (r"\bleast\b", "lowest"),
        (r"\bmost\b", "aaa"),
        (r"\bagain\b", "repeated"),
        (r"\bhalf\b", "halved"),
        (r"\bclip\b", "clipped"),
        (r"\bdeepest\b", "zzz"),
        (r"\bsmallest\b", "lowest"),
        (r"\bLIMIT\b", "BOUND"),
        (r"\bnumbers\.smallest", "numbers . smallest"),
    ],
)
def test_names_of_helpers_and_constants_are_no_change(
    helped: Callable[..., Meaning], change: tuple[str, str]
) -> None:
    assert helped(change).digest == helped().digest


@pytest.mark.parametrize(
    "change",
    [
        (r"return value \+ 1", "return value + 3"),
        (r"return value \+ 2", "return value + 3"),
        (r"value \* self.factor", "value + self.factor"),
        (r"Scale\(2\)", "Scale(3)"),
        (
            r"def smallest\(one, other\):\n    return min",
            "def smallest(one, other):\n    return max",
        ),
        (r"number // 2", "number // 3"),
        (r"LIMIT = 5", "LIMIT = 6"),
        (r"again\(value - 1\)", "most(value - 1, 0)"),
        # Both helpers are used before and after, each in the place of the other.
        (r"least\(value, 3\), most\(value, 7\)", "most(value, 3), least(value, 7)"),
        (r"clip\(half\(small\)\)", "half(clip(small))"),
    ],
)
def test_what_helpers_do_counts_in_other_packages_too(
    helped: Callable[..., Meaning], change: tuple[str, str]
) -> None:
    before, after = helped(), helped(change)

    assert before.digest != after.digest
    assert changes_between(before.facts, after.facts)


WITHIN = """
shadowed = width = 5

def rule(value, shadowed, width):
    from the_rules import limits
    from the_rules.limits import LOW, HIGH
    try:
        from the_rules.broken import nothing
    except ImportError:
        pass
    return (shadowed - width) * limits.STEP + LOW - HIGH - limits.clip(value)
"""
LIMITS = """
LOW, HIGH, STEP = 1, 2, 3

def clip(value):
    return value // 4
"""


@pytest.mark.parametrize(
    "change",
    [
        ("shadowed - width", "width - shadowed"),
        ("LOW, HIGH, STEP = 1, 2", "LOW, HIGH, STEP = 2, 1"),
        ("STEP = 1, 2, 3", "STEP = 1, 2, 4"),
        ("value // 4", "value // 5"),
    ],
)
def test_what_a_function_imports_when_it_runs_and_names_of_its_own_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str]
) -> None:
    def digest(name: str, was: str = "", now: str = "") -> str:
        folder = tmp_path / name / "the_rules"
        folder.mkdir(parents=True)
        for module, text in {"rule": WITHIN, "limits": LIMITS, "broken": "import no_such"}.items():
            (folder / f"{module}.py").write_text(text.replace(was, now) if was else text)
        (folder / "__init__.py").touch()
        for each in [n for n in sys.modules if n.startswith("the_rules")]:
            monkeypatch.delitem(sys.modules, each)
        with monkeypatch.context() as path:
            path.syspath_prepend(folder.parent)
            return meaning_of_function(importlib.import_module("the_rules.rule").rule).digest

    before = digest("before")

    assert digest("same") == before
    assert digest("after", *change) != before


def test_two_helpers_whose_names_are_swapped_are_another_rule(
    helped: Callable[..., Meaning],
) -> None:
    swapped = helped(("return min", "return MAX"), ("return max", "return min"), ("MAX", "max"))

    assert swapped.digest != helped().digest


def test_a_renamed_helper_is_not_refused_and_the_next_change_tells_of_itself_alone(
    helped: Callable[..., Meaning], checkpoint: str
) -> None:
    def identity(*changes: tuple[str, str]) -> Identity:
        meaning = helped(*changes)
        return Identity(meaning.facts, edition=EDITION, digest=meaning.digest)

    renamed = (r"\bleast\b", "lowest")
    check_identity(HOURS.name, checkpoint, identity())
    check_identity(HOURS.name, checkpoint, identity(renamed))

    with pytest.raises(CheckpointIncompatible) as refused:
        check_identity(HOURS.name, checkpoint, identity(renamed, (r"// 2", "// 3")))
    assert str(refused.value).endswith("What changed: code of rule changed")


ALL = """
import json
from assets.topology import TOPOLOGY
from rivermark import Stream
from rivermark.process.spark.build import ProcessBuild
from rivermark.runtime.checkpoint.identity import process_identity
rules = [s for s in TOPOLOGY.streams if isinstance(getattr(s, "build", None), ProcessBuild)]
made = {s.name: process_identity(s.build) for s in rules}
print(json.dumps({name: [each.facts, each.digest] for name, each in made.items()}, indent=1))
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
    assert made == replace(earlier, facts={PLAN: text}, digest=made.digest)


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
