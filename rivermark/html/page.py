"""Pages: self-contained files that load nothing, drawn from Jinja2 templates and values."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SHARED: Final = "rivermark.html"
CELL: Final = re.compile(r"<t[dh]\b")


class Script(NamedTuple):
    """The script of all pages, and its digest, by which their policy lets no other one run."""

    text: Markup
    hash: str


@cache
def pages_of(package: str, *filters: tuple[str, Callable[..., str]]) -> Environment:
    """The templates in the folder `templates` of a package, and those that all pages share.

    A page extends `page.html`; `macros.html` has tables, badges and the search, `chart.html` draws
    the values of `rivermark.html.chart`. Every value is escaped, unless a macro made it.
    """
    # Imported when a page is drawn: it takes a tenth of the start of a command that draws none.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(SHARED)]),
        # For every template, whatever its name: no page ever shows a value as markup.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    environment.filters["labelled"] = labelled
    script = environment.get_template("page.js").render()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    environment.globals["page_script"] = Script(Markup(script), f"sha256-{digest}")  # noqa: S704
    return environment


def labelled(cells: Markup, columns: Sequence[str]) -> Markup:
    """The cells of a table's row, each with the name of its column, for a narrow window."""
    from markupsafe import Markup, escape

    names = iter(columns)
    return Markup(  # noqa: S704 - escaped by the macro that drew them
        CELL.sub(lambda cell: f'{cell[0]} data-label="{escape(next(names))}"', cells)
    )
