"""Streams as a component of `dg`: a `defs.yaml` in the place of a line of Python.

type: rivermark.dagster.component.StreamsComponent
attributes:
topology: my_project.streams:TOPOLOGY
prefix: streams
"""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

import dagster as dg
from pydantic import Field

from rivermark.dagster import definitions
from rivermark.dagster.declared import PARTS
from rivermark.model.errors import DeclarationError
from rivermark.model.topology import Topology


class StreamsComponent(dg.Component, dg.Model, dg.Resolvable):
    """Streams as assets, with their checks, jobs, schedules and sensors."""

    topology: str = Field(
        description="Where the streams are declared: my_project.streams:TOPOLOGY."
    )
    prefix: str = Field(default="", description="How keys of assets and all names begin.")
    parts: Sequence[str] = Field(
        default=PARTS, description="What is wanted beside assets: checks, jobs, schedules, sensors."
    )
    settings: dict[str, Any] = Field(
        default={}, description="Settings over those of the environment, such as home."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions; DeclarationError where `topology` names no Topology."""
        try:
            declared = resolve_name(self.topology)
        except (ImportError, AttributeError, ValueError) as error:
            raise DeclarationError(
                f"topology {self.topology!r} in {context.path}: {error}; write MODULE:NAME, as in "
                "my_project.streams:TOPOLOGY"
            ) from error
        if not isinstance(declared, Topology):
            raise DeclarationError(
                f"topology {self.topology!r} in {context.path} is a {type(declared).__name__}; "
                "name what Topology(...) was assigned to"
            )
        return definitions(
            declared, prefix=self.prefix, parts=self.parts, settings=dict(self.settings)
        )
