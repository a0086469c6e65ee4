r"""The dialect of patterns: regular expressions that DuckDB (RE2) and Spark (Java) read alike.

    >>> in_both(r"[A-Z]\d{2}.")
    '\\A(?:[A-Z][0-9]{2}[^\\x{A}])\\z'

A pattern is parsed, and written again with every class spelled out, so that no meaning is left to
the library that runs it. Read are:

- characters, `.` (any but a line feed), `\d \w \s \D \W \S` (ASCII; `\s` with the vertical tab),
  `\n \t \r \f \v \xhh \uhhhh \x{h...}`, and `\` before a sign;
- classes `[a-z_]`, `[^...]`, with the escapes above;
- `|`, `(...)`, `(?:...)`, `^` and `$` (start and end of the whole text);
- `* + ? {n} {n,} {n,m}`, also with a `?` behind them, up to 1,000 times, inner repeats multiplied;
- `(?i)` at the start, for the letters a to z only, and `(?s)`, by which `.` is also a line feed.

Refused are what one of them lacks (lookaround, references, possessive repeats, named groups) and
what they read differently (`\b`, `\p{...}`, `[a&&b]`, `[[:alpha:]]`, `\h`, `\Z`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MOST_REPEATS: Final = 1_000
"""RE2 repeats nothing more often, repeats of repeats multiplied."""

LONGEST: Final = 10_000
"""Characters and classes, repeats counted: RE2 compiles patterns into a memory of 8 MiB."""

LAST: Final = 0x10FFFF
DIGITS: Final = ((0x30, 0x39),)
WORD: Final = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Final = ((0x09, 0x0D), (0x20, 0x20))
SETS: Final = {"d": DIGITS, "w": WORD, "s": SPACE}
CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
REPEAT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
CODE: Final = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
FLAGS: Final = re.compile(r"\(\?([is]+)\)")
INSTEAD: Final = {
    "b": "write the neighbouring characters out",
    "B": "write the neighbouring characters out",
    "p": "list the characters, as [A-Za-z]",
    "P": "list the characters, as [^A-Za-z]",
    "A": "write ^",
    "Z": "write $",
    "z": "write $",
    "h": r"write [ \t]",
    "R": r"write (\r\n|\n|\r)",
    "Q": "put a backslash before each sign",
    "k": "write the group out",
}

Range = tuple[int, int]


@dataclass(frozen=True)
class _Piece:
    """A part that is written again: how often its inmost part repeats, and how long it is."""

    text: str
    repeats: int = 1
    length: int = 1


class PatternRefused(ValueError):
    """What in a pattern is not of the dialect, and what to write in its place."""


@lru_cache(maxsize=1024)
def in_both(pattern: str) -> str:
    """The pattern for the whole of a text, in a form that RE2 and Java read alike.

    Raises:
        PatternRefused: Something in it is not of the dialect.
    """
    flags = FLAGS.match(pattern)
    letters = flags[1] if flags else ""
    parser = _Parser(pattern, flags.end() if flags else 0, "i" in letters, "s" in letters)
    whole = parser.alternatives()
    if parser.rest:
        raise parser.refusal(parser.rest[0], r"it closes no bracket; write \) for the sign")
    if whole.repeats > MOST_REPEATS or whole.length > LONGEST:
        raise PatternRefused(
            f"its parts are repeated {whole.repeats:,} times, or {whole.length:,} characters long; "
            f"write at most {MOST_REPEATS:,} and {LONGEST:,}"
        )
    return rf"\A(?:{whole.text})\z"


@dataclass
class _Parser:
    pattern: str
    at: int
    any_case: bool
    dot_is_any: bool
    depth: int = 0

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    def refusal(self, what: str, advice: str) -> PatternRefused:
        return PatternRefused(f"{what} at place {self.at + 1}: {advice}")

    def alternatives(self) -> _Piece:
        """Branches up to a closing bracket or the end."""
        text, repeats, length = "", 1, 0
        while self.rest and self.rest[0] != ")":
            if self.rest[0] == "|":
                self.at += 1
                text += "|"
                continue
            piece = self._repeated()
            text += piece.text
            repeats, length = max(repeats, piece.repeats), length + piece.length
        return _Piece(text, repeats, length)

    def _repeated(self) -> _Piece:
        anchor = self.rest[0] in "^$"
        piece = self._item()
        count, times = self._quantifier()
        if not count:
            return piece
        if anchor:
            raise self.refusal("a repeat of ^ or $", "leave it out")
        if self._quantifier()[0]:
            raise self.refusal("a repeat of a repeat", "put the inner one in brackets")
        return _Piece(piece.text + count, piece.repeats * times, piece.length * times)

    def _quantifier(self) -> tuple[str, int]:
        """The repeat that stands here, if one does, and how often it is written out."""
        sign, times = self.rest[:1], 1
        if sign == "{":
            counted = REPEAT.match(self.rest)
            if counted is None:
                raise self.refusal("{", r"a repeat is {n}, {n,} or {n,m}; write \{ for the sign")
            low = int(counted[1])
            high = int(counted[3]) if counted[3] else low
            if high < low:
                raise self.refusal(counted[0], "it ends before it begins")
            sign, times = counted[0], max(high, 1)
        elif sign not in ("*", "+", "?"):
            return "", 1
        self.at += len(sign)
        if self.rest.startswith("+"):
            raise self.refusal(f"{sign}+", f"DuckDB knows no possessive repeat; write {sign}")
        if self.rest.startswith("?"):
            self.at += 1  # Of the whole of a text a lazy repeat matches the same.
        return sign, times

    def _item(self) -> _Piece:
        sign = self.rest[0]
        match sign:
            case "(":
                return self._group()
            case "[":
                return _Piece(self._class())
            case "\\":
                return _Piece(self._written(self._escaped()))
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise self.refusal(sign, f"nothing stands before it; write \\{sign} for the sign")
        self.at += 1
        match sign:
            case "^":
                return _Piece(r"\A")
            case "$":
                return _Piece(r"\z")
            case ".":
                any_of = ((0, LAST),) if self.dot_is_any else _without(((0x0A, 0x0A),))
                return _Piece(_class_of(any_of))
        return _Piece(self._written(self._character(ord(sign))))

    def _group(self) -> _Piece:
        opening = "(?:" if self.rest.startswith("(?:") else "("
        if opening == "(" and self.rest.startswith("(?"):
            inside = self.rest[2:3]
            if inside in ("=", "!") or self.rest[2:4] in ("<=", "<!"):
                raise self.refusal(
                    self.rest[:3], "DuckDB cannot look ahead or behind; use no_rows_where"
                )
            if inside in ("<", "P", "'"):
                raise self.refusal(self.rest[:3], "write the group without a name")
            raise self.refusal(self.rest[:3], "only (?i), (?s) and (?is), and only at the start")
        if self.depth == 100:
            raise self.refusal("(", "brackets lie more than 100 deep")
        self.at += len(opening)
        self.depth += 1
        inner = self.alternatives()
        self.depth -= 1
        if not self.rest:
            raise self.refusal("(", "it is not closed")
        self.at += 1
        return _Piece(f"(?:{inner.text})", inner.repeats, inner.length)

    def _escaped(self) -> tuple[Range, ...]:
        """The characters that an escape stands for."""
        self.at += 1
        sign = self.rest[:1]
        if code := CODE.match(self.rest):
            self.at += code.end()
            return self._character(int(code[1] or code[2] or code[3], 16))
        if sign.lower() in SETS and sign:
            self.at += 1
            members = SETS[sign.lower()]
            return members if sign in SETS else _without(members)
        if sign in CONTROLS:
            self.at += 1
            return self._character(ord(CONTROLS[sign]))
        if sign.isascii() and sign and not sign.isalnum():
            self.at += 1
            return self._character(ord(sign))
        advice = "write the group out" if sign.isdigit() else "write the character itself"
        self.at -= 1
        raise self.refusal(f"\\{sign}", INSTEAD.get(sign, advice))

    def _character(self, code: int) -> tuple[Range, ...]:
        if code > LAST or 0xD800 <= code <= 0xDFFF:
            raise self.refusal(f"{code:X}", "it is the code of no character")
        return ((code, code),)

    def _class(self) -> str:
        start = self.at
        negated = self.rest.startswith("[^")
        self.at += 2 if negated else 1
        members: list[Range] = []
        while not self.rest.startswith("]") or not members:
            if not self.rest or self.rest[0] == "]":
                self.at = start
                raise self.refusal("[", r"the class is not closed, or empty; write \] for the sign")
            members += self._members()
        self.at += 1
        chosen = self._cased(tuple(members))
        return _class_of(_without(chosen) if negated else chosen)

    def _members(self) -> tuple[Range, ...]:
        """The next character, range or escape of a class."""
        if self.rest[0] == "[":
            raise self.refusal("[", r"list the characters, as a-z; write \[ for the sign")
        if self.rest[:2] in ("&&", "--", "~~", "||"):
            raise self.refusal(self.rest[:2], "list the characters of the class")
        first = self._one_of_class()
        if not self.rest.startswith("-") or self.rest[1:2] in ("]", ""):
            return first
        self.at += 1
        last = self._one_of_class()
        if any(len(end) != 1 or end[0][0] != end[0][1] for end in (first, last)):
            raise self.refusal("-", r"a range is of two characters; write \- for the sign")
        if last[0][0] < first[0][0]:
            raise self.refusal("-", "the range ends before it begins")
        return ((first[0][0], last[0][0]),)

    def _one_of_class(self) -> tuple[Range, ...]:
        sign = self.rest[0]
        if sign == "\\":
            return self._escaped()
        if sign == "[":
            raise self.refusal("[", r"write \[ for the sign")
        self.at += 1
        return self._character(ord(sign))

    def _written(self, members: tuple[Range, ...]) -> str:
        chosen = self._cased(members)
        if len(chosen) == 1 and chosen[0][0] == chosen[0][1]:
            return _literal(chosen[0][0])
        return _class_of(chosen)

    def _cased(self, members: tuple[Range, ...]) -> tuple[Range, ...]:
        """With `(?i)`, the letters a to z of either case beside those that are named."""
        if not self.any_case:
            return members
        other: list[Range] = []
        for first, last in members:
            for low, high, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
                start, end = max(first, low), min(last, high)
                if start <= end:
                    other.append((start + shift, end + shift))
        return (*members, *other)


def _without(members: tuple[Range, ...]) -> tuple[Range, ...]:
    """All characters but these."""
    rest, at = [], 0
    for first, last in _joined(members):
        if at < first:
            rest.append((at, first - 1))
        at = last + 1
    if at <= LAST:
        rest.append((at, LAST))
    return tuple(rest)


def _joined(members: tuple[Range, ...]) -> list[Range]:
    joined: list[Range] = []
    for first, last in sorted(members):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _class_of(members: tuple[Range, ...]) -> str:
    """A class, negated where that is shorter."""
    ranges = _joined(members)
    sign = ""
    if ranges and ranges[-1][1] == LAST and ranges != [(0, LAST)]:
        ranges, sign = _joined(_without(members)), "^"
    if not ranges:
        raise PatternRefused("a class holds no character at all")
    parts = (_literal(a) if a == b else f"{_literal(a)}-{_literal(b)}" for a, b in ranges)
    return f"[{sign}{''.join(parts)}]"


def _literal(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else rf"\x{{{code:X}}}"
