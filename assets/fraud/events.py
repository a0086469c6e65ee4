"""What a login and a card payment are. Amounts are US dollars with two places."""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    LongType,
    StringType,
    TimestampType,
)

from rivermark.model.contract import Contract, Field, Rule

AMOUNT: Final = DecimalType(12, 2)

LOGIN: Final = Contract(
    fields=(
        Field("account_id", StringType(), required=True, description="Whose account."),
        Field(
            "number", LongType(), required=True, description="The account's own count of logins."
        ),
        Field("event_time", TimestampType(), required=True, description="When it was (UTC)."),
        Field("succeeded", BooleanType(), required=True, description="Whether it was let in."),
        Field("country", StringType(), required=True, description="From where, two letters."),
    ),
    event_time="event_time",
    keys=("account_id", "number"),
)

PAYMENT: Final = Contract(
    fields=(
        Field("card_id", StringType(), required=True, description="The card."),
        Field("number", LongType(), required=True, description="The card's own count of payments."),
        Field("event_time", TimestampType(), required=True, description="When it was (UTC)."),
        Field("amount", AMOUNT, required=True, description="How much (USD)."),
        Field("merchant", StringType(), required=True, description="To whom."),
    ),
    event_time="event_time",
    keys=("card_id", "number"),
    rules=(
        Rule(
            "amount_not_positive",
            lambda: F.col("amount") <= 0,
            "quarantine",
            "Refunds are no payments.",
        ),
    ),
)
