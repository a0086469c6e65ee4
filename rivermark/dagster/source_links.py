"""Links to the code that declares a stream, for the page of its asset."""

from __future__ import annotations

import inspect
import warnings

import dagster as dg

from rivermark.model.declared import place_of
from rivermark.model.stream import AnyStream, Stream


def code_references(stream: AnyStream) -> dict[str, dg.CodeReferencesMetadataValue]:
    """Metadata with the declaration's place, and that of the stream's `build`; empty if unknown."""
    places = [*_declaration(stream), *_build(stream)]
    if not places:
        return {}
    with warnings.catch_warnings():
        # Marked beta in 1.13, told at each load.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return {
            "dagster/code_references": dg.CodeReferencesMetadataValue(
                code_references=[
                    dg.LocalFileCodeReference(file_path=path, line_number=line, label=label)
                    for path, line, label in places
                ]
            )
        }


def _declaration(stream: AnyStream) -> list[tuple[str, int, str]]:
    place = place_of(stream)
    return [(place.file, place.line, "declaration")] if place is not None else []


def _build(stream: AnyStream) -> list[tuple[str, int, str]]:
    if not isinstance(stream, Stream):
        return []
    code = getattr(inspect.unwrap(stream.build), "__code__", None)
    return [(code.co_filename, code.co_firstlineno, "transformation")] if code else []
