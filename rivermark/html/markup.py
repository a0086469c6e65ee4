"""HTML from values: every text is escaped, unless it is markup already."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Markup(str):
    """A text that is HTML; any other text is escaped before it gets into a page."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]

VOID = frozenset({"meta", "br", "hr", "rect", "path", "line", "circle", "polyline"})


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. `class_` is the class, `aria_label` the label; None and False leave one out."""
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Markup(f"<{name}{told}>" if name in {"meta", "br", "hr"} else f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(children: Child) -> Markup:
    """Children one after the other; None is nothing."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, str | int | float):
        return Markup(html.escape(str(children)))
    return Markup("".join(join(child) for child in children))


def table(
    caption: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[Child]],
    *,
    numeric: Iterable[str] = (),
) -> Markup:
    """A real table with a caption and headers; the first cell of a row is its header.

    It stands in a region of its own that can be scrolled, by keyboard too, where it is too wide.
    """
    names, right = list(columns), set(numeric)
    kinds = ["n" if name in right else None for name in names]
    head = (
        tag("th", name, scope="col", class_=kind) for name, kind in zip(names, kinds, strict=True)
    )
    body = []
    for row in rows:
        first, *others = row
        cells = (tag("td", cell, class_=kind) for cell, kind in zip(others, kinds[1:], strict=True))
        body.append(tag("tr", tag("th", first, scope="row"), cells))
    if not body:
        return tag("p", f"{caption}: nothing yet.", class_="none")
    made = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
    )
    return tag("div", made, class_="wide", role="region", tabindex=0, aria_label=caption)


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    # SVG spells this one in camel case.
    name = "viewBox" if name == "viewbox" else name
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
