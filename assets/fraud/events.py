"""What a login and a card payment are. Amounts are US dollars with two places."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final

from rivermark import Contract, Field, Rule
from rivermark.process import ColumnType

AMOUNT: Final = "decimal(12,2)"
Amount = Annotated[Decimal, ColumnType(AMOUNT)]
Sum = Annotated[Decimal, ColumnType("decimal(22,2)")]
"""Of amounts, with room for any of them."""

LOGIN: Final = Contract(
    fields=(
        Field("account_id", "string", required=True, description="Whose account."),
        Field("number", "long", required=True, description="The account's own count of logins."),
        Field("event_time", "timestamp", required=True, description="When it was (UTC)."),
        Field("succeeded", "boolean", required=True, description="Whether it was let in."),
        Field("country", "string", required=True, description="From where, two letters."),
    ),
    event_time="event_time",
    keys=("account_id", "number"),
)

PAYMENT: Final = Contract(
    fields=(
        Field("card_id", "string", required=True, description="The card."),
        Field("number", "long", required=True, description="The card's own count of payments."),
        Field("event_time", "timestamp", required=True, description="When it was (UTC)."),
        Field("amount", AMOUNT, required=True, description="How much (USD)."),
        Field("merchant", "string", required=True, description="To whom."),
    ),
    event_time="event_time",
    keys=("card_id", "number"),
    rules=(
        Rule(
            "amount_not_positive",
            "amount <= 0",
            "quarantine",
            "Refunds are no payments.",
        ),
    ),
)
