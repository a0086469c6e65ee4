"""Pages: self-contained files that load nothing, drawn from Jinja2 templates and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

SHARED: Final = "rivermark.html"


def pages_of(package: str, filters: Mapping[str, Callable[..., str]]) -> Environment:
    """The templates in the folder `templates` of a package, and those that all pages share.

    A page extends `page.html`; `macros.html` has tables and badges. Every value is escaped, unless
    a macro made it.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(SHARED)]),
        # For every template, whatever its name: no page ever shows a value as markup.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment
