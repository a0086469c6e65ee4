"""Texts from outside, such as names of files, keys and values, made safe for a terminal."""

from __future__ import annotations

import re
from typing import Final

CONTROLS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, those that reverse the direction of a line, and undecodable bytes."""

SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, lines: bool = False) -> str:
    """The text with its control characters escaped, ESC as backslash x1b; `lines` keep their ends.

    A terminal obeys control characters: a name of a file could hide or forge output.
    """
    return CONTROLS.sub(lambda m: "\n" if lines and m[0] == "\n" else _escape(m[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # How Python holds a byte of a file name that is no UTF-8.
        code -= 0xDC00
    return SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
