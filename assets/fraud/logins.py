"""Guessed passwords: several logins in a row are refused, and the next one succeeds."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from assets.fraud.once import EachOnce
from rivermark.process import Context, Millis, Record
from rivermark.process.patterns import Match, Pattern

RULE_VERSION: Final = 1
"""Raise it with every change of this rule: alerts carry it."""

FAILURES: Final = 3
WITHIN: Final = timedelta(minutes=10)


class Login(Record):
    """A login."""

    account_id: str
    number: int
    event_time: Millis
    succeeded: bool
    country: str


class GuessedPassword(Record):
    """An account that may have been broken into at `event_time`, and what says so.

    `logins` are the numbers of the logins that made the alert, `since` the time of the first.
    """

    account_id: str
    event_time: Annotated[Millis, "When the login succeeded (UTC)."]
    since: Annotated[Millis, "When the first refused login of the alert was (UTC)."]
    country: Annotated[str, "From where the login succeeded, two letters."]
    logins: Annotated[list[int], "Numbers of the logins that made the alert."]
    rule_version: Annotated[int, "Version of the rule."]


def refused(login: Login, earlier: Match[Login]) -> bool:
    """Whether a login was refused."""
    return not login.succeeded


def let_in(login: Login, earlier: Match[Login]) -> bool:
    """Whether a login succeeded."""
    return login.succeeded


class GuessedPasswords(EachOnce[Login, GuessedPassword]):
    """Three refused logins of an account and then a successful one, all within ten minutes.

    Keeps the refused logins of the last ten minutes, until one succeeds. However many were refused,
    there is one alert, with the last three.
    """

    key = "account_id"
    time = "event_time"
    after_match = "skip_past_last"
    pattern = (
        Pattern.begin("failures", refused)
        .times(FAILURES)
        .consecutive()
        .next("success", let_in)
        .within(WITHIN)
    )

    def on_match(self, match: Match[Login], ctx: Context[GuessedPassword]) -> None:
        """Alert with the logins that made the match."""
        success = match.one("success")
        ctx.emit(
            GuessedPassword(
                success.account_id,
                success.event_time,
                match.start,
                success.country,
                [each.number for each in match.events()],
                RULE_VERSION,
            )
        )
