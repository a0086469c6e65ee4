"""Settings of a client of an outside service, of which secrets are those of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rivermark.model.errors import RivermarkError


def resolved_settings(service: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the environment's values for `$NAME`; RivermarkError where one is unset."""
    return {name: _resolved(service, name, value) for name, value in settings.items()}


def _resolved(service: str, name: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    resolved = os.environ.get(value[1:])
    if resolved is None:
        raise RivermarkError(
            f"the {service} setting '{name}' refers to the environment variable {value[1:]}, "
            "which is not set"
        )
    return resolved
