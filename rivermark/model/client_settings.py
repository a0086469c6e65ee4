"""The settings of a client of an outside service, whose secrets are those of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rivermark.model.errors import RivermarkError


def kafka_settings(brokers: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client of Kafka. A value `$NAME` is that of the environment variable.

    Raises:
        RivermarkError: a variable that is named is not set.
    """
    named = {"bootstrap.servers": brokers, **settings}
    return {name: _resolved(name, value) for name, value in named.items()}


def _resolved(name: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    resolved = os.environ.get(value[1:])
    if resolved is None:
        raise RivermarkError(
            f"the Kafka setting '{name}' is to be that of the environment variable {value[1:]}, "
            "which is not set"
        )
    return resolved
