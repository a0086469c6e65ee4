"""A client of an outside service: whether it is installed, and its settings.

Secrets among the settings are those of the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from rivermark.model.errors import RivermarkError


def require_kafka_client(what: str) -> None:
    """Raise RivermarkError where Kafka's client is not installed; `what` says what needs it."""
    if find_spec("confluent_kafka") is None:
        raise RivermarkError(f"{what} needs Kafka's client: pip install 'rivermark[kafka]'")


def require_postgres_client(what: str) -> None:
    """Raise RivermarkError where PostgreSQL's client is not installed; `what` needs it."""
    if find_spec("psycopg") is None:
        raise RivermarkError(f"{what} needs PostgreSQL's client: pip install 'rivermark[postgres]'")


def kafka_settings(brokers: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client of Kafka. A value `$NAME` is that of the environment variable.

    Raises:
        RivermarkError: a variable that is named is not set.
    """
    named = {"bootstrap.servers": brokers, **settings}
    return resolved_settings("Kafka", named)


def resolved_settings(service: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the environment's values for `$NAME`; RivermarkError where one is unset."""
    return {name: _resolved(service, name, value) for name, value in settings.items()}


def _resolved(service: str, name: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    resolved = os.environ.get(value[1:])
    if resolved is None:
        raise RivermarkError(
            f"the {service} setting '{name}' is to be that of the environment variable "
            f"{value[1:]}, which is not set"
        )
    return resolved
