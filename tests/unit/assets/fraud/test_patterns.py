"""Fraud patterns against plain Python: guessed passwords, cards that are tried out or drained."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.fraud.cards import CardPattern, ManyPayments, Payment, SmallThenLarge
from assets.fraud.logins import GuessedPassword, GuessedPasswords, Login
from rivermark.testing import ProcessHarness, split_invariant
from simulator.fraud.world import FraudWorld, LoginEvent, PaymentEvent
from tests.oracles import fraud as oracle

SECOND = 1_000
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def logins(marks: str, every: int = 60) -> list[Login]:
    """One login every so many seconds: x is refused, o is let in."""
    return [Login("ada", n, n * every * SECOND, mark == "o", "DE") for n, mark in enumerate(marks)]


def payments(*steps: tuple[float, str]) -> list[Payment]:
    """Payments at seconds, of amounts."""
    return [
        Payment("1234", n, round(at * SECOND), Decimal(amount))
        for n, (at, amount) in enumerate(steps)
    ]


def guessed(story: list[Login]) -> list[GuessedPassword]:
    harness = ProcessHarness(GuessedPasswords())
    harness.feed(story)
    harness.end_of_input()
    assert harness.is_empty()
    return harness.outputs()


def alerts(process: type[CardPattern], story: list[Payment]) -> list[list[int]]:
    harness = ProcessHarness(process())
    harness.feed(story)
    harness.end_of_input()
    assert harness.is_empty()
    return [each.payments for each in harness.outputs()]


@pytest.mark.parametrize(
    ("marks", "found"),
    [
        ("xxxo", [[0, 1, 2, 3]]),
        ("xxo", []),
        ("xxxxxo", [[2, 3, 4, 5]]),
        ("xxoxo", []),
        ("xxxoxxxo", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("xxx", []),
    ],
)
def test_three_refused_logins_and_a_success_are_a_guessed_password(
    marks: str, found: list[list[int]]
) -> None:
    assert [each.logins for each in guessed(logins(marks))] == found


def test_ten_minutes_still_count_and_more_do_not() -> None:
    assert len(guessed(logins("xxxo", every=200))) == 1
    assert guessed(logins("xxxo", every=201)) == []


def test_a_refused_login_that_came_twice_is_one() -> None:
    story = logins("xxo")

    assert guessed([story[0], story[0], *story[1:]]) == []
    assert len(guessed([logins("xxxo")[0], *logins("xxxo")])) == 1


def test_an_alert_names_the_logins_and_the_version_of_the_rule() -> None:
    [alert] = guessed(logins("xxxo"))

    assert (alert.since, alert.event_time, alert.rule_version) == (0, 180_000, 1)


@pytest.mark.parametrize(
    ("story", "found"),
    [
        ([(0, "0.99"), (60, "500.01")], [[0, 1]]),
        ([(0, "1.00"), (60, "500.01")], []),
        ([(0, "0.99"), (60, "500.00")], []),
        ([(0, "0.99"), (60.001, "501")], []),
        ([(0, "0.99"), (10, "20"), (20, "501")], []),
        ([(0, "0.99"), (10, "0.50"), (20, "501")], [[1, 2]]),
    ],
)
def test_a_trial_and_then_much_at_once(
    story: list[tuple[float, str]], found: list[list[int]]
) -> None:
    assert alerts(SmallThenLarge, payments(*story)) == found


def test_five_payments_within_a_minute_alert_once_and_the_next_needs_five_more() -> None:
    quick = [(n * 15.0, "20") for n in range(9)]

    assert alerts(ManyPayments, payments(*quick)) == [[0, 1, 2, 3, 4]]
    assert alerts(ManyPayments, payments(*quick, (135, "20"))) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert alerts(ManyPayments, payments(*[(n * 15.001, "20") for n in range(9)])) == []


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.booleans(), st.sampled_from("ab")), min_size=1, max_size=9
    )
)
def test_guessed_passwords_are_those_of_the_whole_story_however_arrivals_are_cut(
    steps: list[tuple[int, bool, str]],
) -> None:
    story = [
        Login(account, n, minute * 30 * SECOND, succeeded, "DE")
        for n, (minute, succeeded, account) in enumerate(steps)
    ]
    ran = split_invariant(GuessedPasswords, story, delay=timedelta(minutes=16))

    found = [(each.account_id, each.event_time, each.logins) for each in ran.outputs.main]
    plain = [(e.account_id, e.number, e.event_time, e.succeeded) for e in story]
    assert sorted(found) == oracle.guessed_passwords(plain)
    assert ran.state is None


AMOUNTS = ["0.50", "20", "600"]


@pytest.mark.parametrize(
    ("process", "expected"),
    [(SmallThenLarge, oracle.small_then_large), (ManyPayments, oracle.many_payments)],
)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(AMOUNTS)), min_size=1, max_size=10))
def test_card_alerts_are_those_of_the_whole_story_however_arrivals_are_cut(
    process: type[CardPattern], expected: object, steps: list[tuple[int, str]]
) -> None:
    story = payments(*[(5.0 * n, amount) for n, amount in steps])
    ran = split_invariant(process, story, delay=timedelta(minutes=4))

    found = [(each.card_id, each.event_time, each.payments) for each in ran.outputs.main]
    plain = [(e.card_id, e.number, e.event_time, e.amount) for e in story]
    assert sorted(found) == expected(plain)  # type: ignore[operator]
    assert ran.state is None


def test_the_worlds_alerts_are_the_oracles_and_some_of_each_kind() -> None:
    world = FraudWorld(accounts=30)
    found_logins = [as_login(each) for each in world.logins(NOON, timedelta(hours=2))]
    found_payments = [as_payment(each) for each in world.payments(NOON, timedelta(hours=2))]

    passwords = [(e.account_id, e.event_time, e.logins) for e in guessed(found_logins)]
    plain = [(e.account_id, e.number, e.event_time, e.succeeded) for e in found_logins]
    assert sorted(passwords) == oracle.guessed_passwords(plain) != []
    paid = [(e.card_id, e.number, e.event_time, e.amount) for e in found_payments]
    for process, expected in (
        (SmallThenLarge, oracle.small_then_large(paid)),
        (ManyPayments, oracle.many_payments(paid)),
    ):
        assert sorted(alerts(process, found_payments)) == sorted(e[2] for e in expected) != []


def as_login(each: LoginEvent) -> Login:
    at = round(each.event_time.timestamp() * 1_000)
    return Login(f"account_{each.account}", each.number, at, each.succeeded, each.country)


def as_payment(each: PaymentEvent) -> Payment:
    at = round(each.event_time.timestamp() * 1_000)
    return Payment(f"card_{each.card}", each.number, at, each.amount)


@pytest.mark.parametrize(
    ("process", "amounts"),
    [(SmallThenLarge, ["0.50", "9999999999.99"]), (ManyPayments, ["9999999999.99"] * 5)],
)
def test_m054_the_largest_payments_are_alerted_with_their_sum(
    process: type[CardPattern], amounts: list[str]
) -> None:
    harness = ProcessHarness(process())
    harness.feed(payments(*((second, amount) for second, amount in enumerate(amounts))))
    harness.end_of_input()

    [alert] = harness.outputs()
    assert alert.amount == sum(map(Decimal, amounts))
