"""Values in Markdown, which Dagster's page and Data Docs render."""

from __future__ import annotations

import html
import re
from typing import Final

MARKS: Final = re.compile(r"([\\`*_\[\]|])")


def markdown_text(value: str) -> str:
    r"""A value as it is: no markup, link, image, cell or line of its own, whatever it holds.

    >>> markdown_text("<b>|![x](y)\na.json")
    '&lt;b&gt;\\|!\\[x\\](y) a.json'
    """
    return MARKS.sub(r"\\\1", html.escape(" ".join(value.split()), quote=False))
