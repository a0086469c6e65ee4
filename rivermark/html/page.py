"""Pages: self-contained files that load nothing, drawn from Jinja2 templates and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jinja2 import Environment

SHARED: Final = "rivermark.html"


@cache
def pages_of(package: str, *filters: tuple[str, Callable[..., str]]) -> Environment:
    """The templates in the folder `templates` of a package, and those that all pages share.

    A page extends `page.html`; `macros.html` has tables and badges. Every value is escaped, unless
    a macro made it.
    """
    # Imported when a page is drawn: it takes a tenth of the start of a command that draws none.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

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
