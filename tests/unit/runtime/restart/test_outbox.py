"""The queue of messages: one for each cause, and one more when it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rivermark.runtime.restart.outbox import WAITS, Outbox, Trouble

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def trouble(cause: str, about: str = "'a'", **changes: tuple[str, ...]) -> Trouble:
    return Trouble(cause=cause, about=about, message=f"{about} fails", **changes)


def send(outbox: Outbox, now: datetime) -> list[str]:
    """Send all that is due, as the process does; returns the texts."""
    texts = []
    for notice in outbox.due(now):
        texts.append(notice.text)
        outbox.tried(notice, None, now)
    return texts


def test_a_cause_is_sent_once_and_once_more_when_it_is_over(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    for second in range(3):
        outbox.update("sensor", [trouble("disk")], NOON + second * SECOND)

    assert send(outbox, NOON + 3 * SECOND) == ["'a' fails"]
    outbox.update("sensor", [trouble("disk")], NOON + 4 * SECOND)
    assert send(outbox, NOON + 4 * SECOND) == []
    outbox.update("sensor", [], NOON + 5 * SECOND)
    assert send(outbox, NOON + 5 * SECOND) == ["over since 2026-03-02 12:00 UTC: 'a' fails"]
    assert outbox.notices() == []


def test_r12_one_cause_of_four_streams_is_one_message_that_names_them(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("damaged:/lake/a", f"'{n}'") for n in "abcd"], NOON)

    assert send(outbox, NOON) == ["'a' fails (also 'b', 'c', 'd')"]


def test_r12_checks_that_one_cause_breaks_are_not_told_beside_it(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("damaged:/lake/a")], NOON)
    outbox.update("checks taxi", [trouble("damaged:/lake/a", "check x")], NOON)
    assert len(send(outbox, NOON)) == 1

    outbox.update("sensor", [], NOON + SECOND)
    assert send(outbox, NOON + SECOND) == [], "the checks are broken by it still"
    outbox.update("checks taxi", [], NOON + 2 * SECOND)
    assert len(send(outbox, NOON + 2 * SECOND)) == 1


def test_r12_what_is_over_before_it_was_sent_is_not_sent(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("silent:taxi")], NOON)
    outbox.update("sensor", [], NOON)

    assert send(outbox, NOON) == []


def test_a_group_that_is_given_up_for_what_is_known_is_no_further_message(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("failed:a")], NOON)
    send(outbox, NOON)
    refused = trouble("given_up:taxi", "'taxi'", within=("failed:a",))

    outbox.update("sensor", [refused], NOON + SECOND)
    assert send(outbox, NOON + SECOND) == []
    assert [notice.cause for notice in outbox.notices()] == ["failed:a"], "it goes on"

    outbox.update("sensor", [], NOON + 2 * SECOND)
    assert len(send(outbox, NOON + 2 * SECOND)) == 1


def test_r13_what_could_not_be_sent_is_tried_again_after_growing_waits(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("disk")], NOON)
    now = NOON
    for wait in (*WAITS, WAITS[-1]):
        (notice,) = Outbox(tmp_path).due(now)
        outbox.tried(notice, "no network", now)
        assert Outbox(tmp_path).due(now + wait - SECOND) == []
        now += wait

    assert send(outbox, now) == ["'a' fails"]


def test_a_damaged_notice_is_written_again_at_the_next_look(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [trouble("disk")], NOON)
    next(outbox.folder.glob("*.json")).write_bytes(b"{")

    outbox.update("sensor", [trouble("disk")], NOON)

    assert send(outbox, NOON) == ["'a' fails"]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["sensor", "checks"]), st.sets(st.sampled_from("xyz")), st.booleans()
        ),
        max_size=25,
    )
)
def test_each_cause_is_sent_alternately_as_open_and_over(
    tmp_path_factory: object, steps: list[tuple[str, set[str], bool]]
) -> None:
    folder = tmp_path_factory.mktemp("outbox")  # type: ignore[attr-defined]
    outbox, now, sent = Outbox(folder), NOON, {cause: [] for cause in "xyz"}  # type: ignore[var-annotated]
    found: dict[str, set[str]] = {}
    for owner, causes, sends in [*steps, ("sensor", set(), True), ("checks", set(), True)]:
        now += SECOND
        found[owner] = causes
        outbox.update(owner, [trouble(cause) for cause in sorted(causes)], now)
        for notice in outbox.due(now) if sends else ():
            sent[notice.cause].append(notice.text.startswith("over"))
            outbox.tried(notice, None, now)
        open_now = {notice.cause for notice in outbox.notices() if notice.over_at is None}
        assert open_now == set().union(*found.values())

    for texts in sent.values():
        assert texts == [n % 2 == 1 for n in range(len(texts))]
        assert len(texts) % 2 == 0
    assert outbox.notices() == []
