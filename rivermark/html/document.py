"""A page as a whole: one file that loads nothing, in the reader's own colours."""

from __future__ import annotations

from typing import Final

from rivermark.html.markup import Child, Markup, tag
from rivermark.html.style import STYLE

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the browser may load for a page: nothing."""


def document(title: str, *body: Child) -> str:
    """A page of HTML with its style in it."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"
