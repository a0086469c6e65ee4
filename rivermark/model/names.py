"""Names of streams, tables, groups and owners: by the lake's rules and by Dagster's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean

NAME: Final = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)+")
"""A table's or stream's name: a domain, then one or more parts, in lower case."""
GROUP: Final = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")
MAIL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
TOPIC: Final = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,249}")
"""A topic's name, as Kafka's brokers take it."""
BROKER: Final = re.compile(
    r"\s*(\$\w+|((plaintext|ssl|sasl_plaintext|sasl_ssl)://)?([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?)\s*",
    re.IGNORECASE,
)
"""A broker's address, as Kafka's client takes it."""


def check_name(kind: str, name: str, *, like: str) -> None:
    """Refuse a name that could be no folder of the lake, or lie outside it."""
    if not NAME.fullmatch(name):
        raise DeclarationError(
            f"{kind} name {name!r}: expected like '{like}' (lower case words, at least one '/')"
        )


def check_group(stream: str, group: str) -> None:
    """Refuse a group that Dagster could not name."""
    if not GROUP.fullmatch(group):
        raise DeclarationError(
            f"stream '{stream}': group {group!r} cannot be one in Dagster; write letters, digits "
            "and '_', as in 'taxi_events'"
        )


def check_owners(stream: str, owners: Iterable[str]) -> None:
    """Refuse an owner whom Dagster would not take."""
    for owner in owners:
        if not MAIL.fullmatch(owner) and not (owner.startswith("team:") and owner != "team:"):
            raise DeclarationError(
                f"stream '{stream}': owner {owner!r} is neither an e-mail address nor a team such "
                "as 'team:taxi'"
            )


def check_topic(declaration: str, topic: str) -> None:
    """Refuse what no Kafka broker takes for the name of a topic."""
    if not TOPIC.fullmatch(topic):
        raise DeclarationError(
            f"{declaration}: {topic!r} cannot be the name of a topic in Kafka; write letters, "
            "digits, '.', '_' and '-', at most 249 of them"
        )


def check_brokers(declaration: str, brokers: str) -> None:
    """Refuse what names no brokers: Kafka's client would look for them for ever."""
    if not all(map(BROKER.fullmatch, brokers.split(","))):
        raise DeclarationError(
            f"{declaration}: {brokers!r} names no brokers; write host:port, several with commas "
            "between, or $NAME for a variable of the environment"
        )


def check_keys(declaration: str, keys: Sequence[str]) -> None:
    """Refuse a key that is named twice."""
    for key in keys:
        if keys.count(key) > 1:
            raise DeclarationError(f"{declaration}: `keys` name '{key}' twice; name each once")


def check_zone(declaration: str, zone: str) -> None:
    """Refuse a time zone that is none."""
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        near = did_you_mean(zone, available_timezones())
        raise DeclarationError(
            f"{declaration}: no time zone is called {zone!r}"
            f"{near or '; write one such as Europe/Berlin'}"
        ) from None
