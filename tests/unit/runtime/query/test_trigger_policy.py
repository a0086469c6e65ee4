"""When a query looks for input: at once, paced by its own batches, and again for what it closes."""

from __future__ import annotations

from pathlib import Path

from rivermark.runtime.query.trigger_policy import LONGEST, Inputs, TriggerPolicy


def at_rest(*versions: int) -> TriggerPolicy:
    policy = TriggerPolicy(min_interval=2.0, started=0.0, versions=versions)
    policy.ended(1.0, had_batch=False)
    return policy


def test_a_query_at_rest_looks_as_soon_as_an_input_has_a_commit() -> None:
    policy = at_rest(3, 7)
    assert not policy.due(1.5, (3, 7))
    assert policy.due(1.5, (3, 8))


def test_it_does_not_look_while_it_looks() -> None:
    policy = at_rest(3)
    policy.start(1.5, (4,))
    assert not policy.due(1.6, (5,))


def test_after_a_batch_it_rests_and_then_looks_for_what_is_left_or_closes() -> None:
    policy = at_rest(3)
    policy.start(10.0, (4,))
    policy.ended(10.5, had_batch=True)
    assert not policy.due(11.9, (5,))
    assert policy.due(12.0, (4,))


def test_a_long_batch_makes_a_long_rest() -> None:
    policy = at_rest(3)
    policy.start(10.0, (4,))
    policy.ended(20.0, had_batch=True)
    assert not policy.due(22.9, (5,))
    assert policy.due(23.0, (5,))


def test_a_query_that_others_wait_for_rests_no_longer_than_its_batch_took() -> None:
    policy = TriggerPolicy(min_interval=0.25, started=0.0, versions=(3,), share=1.0)
    policy.ended(0.1, had_batch=True)
    assert not policy.due(0.2, (4,))
    assert policy.due(0.25, (4,))
    policy.start(10.0, (4,))
    policy.ended(12.0, had_batch=True)
    assert policy.due(12.0, (5,))


def test_a_look_that_found_nothing_ends_the_looking() -> None:
    policy = at_rest(3)
    policy.start(10.0, (4,))
    policy.ended(10.1, had_batch=False)
    assert not policy.due(15.0, (4,))
    assert policy.due(10.1 + LONGEST, (4,))


def test_inputs_are_followed_commit_by_commit(tmp_path: Path) -> None:
    log = tmp_path / "table" / "_delta_log"
    inputs = Inputs([str(tmp_path / "table")])
    assert inputs.newest() == (-1,)
    log.mkdir(parents=True)
    for version in range(3):
        (log / f"{version:020d}.json").touch()
    assert inputs.newest() == (2,)
    assert Inputs([str(tmp_path / "table")]).newest() == (2,)
