"""Broadcast inputs: rules that every key reads, with a version that output rows can carry."""

from __future__ import annotations

import msgspec
import pytest

from rivermark.process import (
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ProcessError,
    ValueState,
)
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import HOUR, NOON, Note, Reading, reading


class Rule(msgspec.Struct, frozen=True):
    name: str
    above: int
    at: int = NOON


class Alert(msgspec.Struct, frozen=True):
    sensor: str
    rule: str
    version: int


class Rules(KeyedProcess[Reading, Alert]):
    readings = Input(Reading, key="sensor", time="at")
    changes = Broadcast(Rule, time="at")

    rules: BroadcastState[str, Rule]
    highest: ValueState[int]

    def on_changes(self, event: Rule, ctx: Context[Alert]) -> None:
        if event.above == 0:
            self.rules.pop(event.name, None)
            return
        self.rules[event.name] = event
        for key in ctx.each_key():
            if self.highest.get(0) > event.above:
                ctx.emit(Alert(key, event.name, self.rules.version))

    def on_readings(self, event: Reading, ctx: Context[Alert]) -> None:
        for name, rule in self.rules.items():
            if event.value > rule.above:
                ctx.emit(Alert(event.sensor, name, self.rules.version_of(name) or 0))
        self.highest.value = max(event.value, self.highest.get(0))


@pytest.fixture
def rules() -> ProcessHarness[Reading, Alert]:
    return ProcessHarness(Rules())


def test_rules_apply_to_every_key_and_rows_carry_their_version(
    rules: ProcessHarness[Reading, Alert],
) -> None:
    rules.feed([Rule("warm", 20), Rule("hot", 30)], "changes")
    rules.feed([reading("a", NOON, 25), reading("b", NOON, 35)], "readings")

    assert rules.outputs() == [Alert("a", "warm", 1), Alert("b", "warm", 1), Alert("b", "hot", 2)]


def test_in_one_batch_rules_come_before_readings(rules: ProcessHarness[Reading, Alert]) -> None:
    rules.feed_together({"readings": [reading("a", NOON, 25)], "changes": [Rule("warm", 20)]})

    assert rules.outputs() == [Alert("a", "warm", 1)]


def test_a_removed_rule_is_gone_and_counts_as_a_change(
    rules: ProcessHarness[Reading, Alert],
) -> None:
    rules.feed([Rule("warm", 20), Rule("warm", 0), Rule("hot", 30)], "changes")
    rules.feed(reading("a", NOON, 35), "readings")

    assert rules.outputs() == [Alert("a", "hot", 3)]


def test_a_rule_can_be_applied_to_the_state_of_every_key(
    rules: ProcessHarness[Reading, Alert],
) -> None:
    rules.feed([reading("a", NOON, 25), reading("b", NOON, 15), reading("c", NOON, 40)], "readings")
    rules.feed(Rule("warm", 20), "changes")

    assert rules.outputs() == [Alert("a", "warm", 1), Alert("c", "warm", 1)]


class Misuses(Rules):
    """Does what its handler may not, as the reading's value says, or a rule of that name."""

    def on_changes(self, event: Rule, ctx: Context[Alert]) -> None:
        self.highest.value = 3

    def on_readings(self, event: Reading, ctx: Context[Alert]) -> None:
        match event.value:
            case 1:
                self.rules["mine"] = Rule("mine", 1)
            case 2:
                list(ctx.each_key())
            case _:
                ctx.emit(Note("hot"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (reading("a", NOON, 1), "broadcast state 'rules' can be read here"),
        (reading("a", NOON, 2), "only the handler of a broadcast input"),
        (reading("a", NOON, 3), "the main output takes Alert, not Note"),
        (Rule("warm", 20), "there is no current key here"),
    ],
    ids=["a keyed handler writes", "and visits other keys", "and emits notes", "state of no key"],
)
def test_what_a_handler_may_not_do_is_refused(event: Reading | Rule, message: str) -> None:
    with pytest.raises(ProcessError, match=message):
        ProcessHarness(Misuses()).feed(event, "changes" if isinstance(event, Rule) else "readings")


def test_held_rules_hold_from_their_own_time_on() -> None:
    class AsOf(Rules):
        order = "event_time"
        hold = True

        def on_changes(self, event: Rule, ctx: Context[Alert]) -> None:
            self.rules[event.name] = event

    as_of = ProcessHarness(AsOf())
    as_of.feed([reading("a", NOON + HOUR, 25), reading("b", NOON - 1, 25)], "readings")
    as_of.feed([reading("c", NOON, 25)], "readings")
    as_of.feed(Rule("warm", 20, at=NOON), "changes")
    as_of.advance_watermark(NOON + HOUR)

    assert as_of.outputs() == [Alert("c", "warm", 1), Alert("a", "warm", 1)]


def test_a_visit_leaves_no_state_in_keys_that_it_only_looks_at(
    rules: ProcessHarness[Reading, Alert],
) -> None:
    rules.feed(reading("a", NOON, 25), "readings")
    before = rules.state_of("a")
    rules.feed(Rule("warm", 90), "changes")

    assert rules.state_of("a") == before
    assert rules.all_keys() == ["a"]
