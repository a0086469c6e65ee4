"""The streams of logins and card payments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.fraud.cards import CardPattern, ManyPayments, SmallThenLarge
from assets.fraud.events import AMOUNT
from assets.fraud.ingest import FIRST_DAY, GROUP, LOGINS, OWNERS, PAYMENTS
from assets.fraud.logins import WITHIN, GuessedPasswords
from rivermark.model import expectations as expect
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.suite import Suite
from rivermark.model.table import Daily, Table
from rivermark.process.spark import run_process

EVENT_TIME: Final = StructField("event_time", TimestampType(), True)
SINCE: Final = StructField("since", TimestampType(), True)
VERSION: Final = StructField("rule_version", LongType(), True)
NUMBERS: Final = ArrayType(LongType(), False)

GUESSED_SHOWN: Final = (
    "Accounts that three refused logins in a row and then a successful one say may be broken into."
)

GUESSED_PASSWORDS: Final = Stream(
    name="fraud/guessed_passwords",
    reads=(LOGINS,),
    build=run_process(GuessedPasswords),
    writes=Table(
        name="fraud/guessed_passwords",
        schema=StructType(
            [
                StructField("account_id", StringType(), True),
                EVENT_TIME,
                SINCE,
                StructField("country", StringType(), True),
                StructField("logins", NUMBERS, True),
                VERSION,
            ]
        ),
        description=GUESSED_SHOWN,
        event_time="event_time",
        keys=("account_id", "event_time"),
        days=Daily(column="event_time", start=FIRST_DAY),
        personal=("account_id", "country"),
    ),
    description=GUESSED_SHOWN,
    group=GROUP,
    margin=WITHIN,
    suite=Suite(
        name="fraud/guessed_passwords",
        expectations=(
            expect.unique(("account_id", "event_time")),
            expect.pair_ordered("since", "event_time"),
            expect.no_rows_where("size(logins) <> 4", name="four logins make an alert"),
            expect.not_null("rule_version"),
        ),
        may_be_empty=True,
    ),
    owners=OWNERS,
)


def card_alerts(name: str, make: Callable[[], CardPattern], count: int, shown: str) -> Stream:
    """The stream of a card pattern, whose alerts are made of so many payments."""
    return Stream(
        name=name,
        reads=(PAYMENTS,),
        build=run_process(make),
        writes=Table(
            name=name,
            schema=StructType(
                [
                    StructField("card_id", StringType(), True),
                    EVENT_TIME,
                    SINCE,
                    StructField("rule", StringType(), True),
                    StructField("amount", AMOUNT, True),
                    StructField("payments", NUMBERS, True),
                    VERSION,
                ]
            ),
            description=shown,
            event_time="event_time",
            keys=("card_id", "event_time"),
            days=Daily(column="event_time", start=FIRST_DAY),
            personal=("card_id",),
        ),
        description=shown,
        group=GROUP,
        # A minute of a card without payments lets its pattern begin anew.
        margin=timedelta(hours=1),
        suite=Suite(
            name=name,
            expectations=(
                expect.unique(("card_id", "event_time")),
                expect.pair_ordered("since", "event_time"),
                expect.no_rows_where(
                    f"size(payments) <> {count}", name=f"{count} payments make an alert"
                ),
                expect.not_null("rule_version"),
            ),
            may_be_empty=True,
        ),
        owners=OWNERS,
    )


TRIED_OUT_CARDS: Final = card_alerts(
    "fraud/tried_out_cards",
    SmallThenLarge,
    2,
    "Cards with a payment below a dollar and the very next one above 500, within a minute.",
)

RAPID_PAYMENTS: Final = card_alerts(
    "fraud/rapid_payments",
    ManyPayments,
    5,
    "Cards with five payments within a minute.",
)

FRAUD_STREAMS: Final[tuple[AnyStream, ...]] = (
    LOGINS,
    PAYMENTS,
    GUESSED_PASSWORDS,
    TRIED_OUT_CARDS,
    RAPID_PAYMENTS,
)
