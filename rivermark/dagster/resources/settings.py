"""The platform's settings as runs, sensors and checks get them."""

from typing import Any

import dagster as dg
from pydantic import Field

from rivermark.settings import Settings


class SettingsResource(dg.ConfigurableResource[Settings]):
    """Gives the settings of the environment (RIVERMARK_...), with `overrides` on top.

    Read when they are asked for, so that a sensor follows the environment of its own process.
    """

    overrides: dict[str, Any] = Field(default={})

    def settings(self) -> Settings:
        """The settings as of now."""
        return Settings(**self.overrides)
