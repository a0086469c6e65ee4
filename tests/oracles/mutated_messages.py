"""Messages of a topic, mutated at random: bytes, values, spellings, nesting, keys and headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from tests.oracles.mutations import NUMBERS, TEXTS, TIMES, mutated

SENT: Final = datetime(2026, 1, 1, 10, 0, 1, 5000, tzinfo=UTC)
WORDS: Final = (
    *("NaN", "-NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF", "+INF", "nan", "inf"),
    *("true", "True", "null", "nul", "-1", "+1", "01", "1.", ".5", "-", "1e5", "1E+05", "1e-999"),
    *("1" * 1_100, "0." + "3" * 1_100, "'a'", "undefined", "-0", "-0.0", "1_000", "0x10", "1f"),
)
"""Values as they are written in an object without quotes."""
ESCAPED: Final = (
    *(
        r"\ud83d",
        r"\ude00",
        r"\ud83d\ude00",
        r"\ude00\ud83d",
        r"\ud83d\ud83d\ude00",
        r"\uD83D\u0041",
    ),
    *(r"\\ud83d", r"\\\ud83d", r"\\\\ud83d", r"\"\ud83d", r"\ud83d\\ude00", r"\ud83dude00"),
    *(r"\ud83d\\\ude00", r"\u005cud83d", r"\\u005cud83d", r"\ufffd", r"\u0000", r"\ufeff", r"\/"),
    *(r"\u00e4", r"\n", r"\x", r"\u12", r"\ud83", r"\uDC00\uD800", r"\ud7ff", r"\ue000"),
)
"""Escapes within a text, as they are written."""
NESTED: Final = (
    *("[]", "{}", "[1.10, 2]", '{"a" : 1.50}', '{"b":"\\u00e4", "a":null}', '["a",  "b"]', "[NaN]"),
    *('{"id":5}', '{"text":"inner"}', "[[[]]]", '{"a":{"b":[true,false,null]}}', r'["\ud83d"]'),
)
BEHIND: Final = (
    *("]", "] {}", "] trailing }", "],[", ",", "}", " x", "{}", "null", "/* */", "//", "#", "\x00"),
    *(
        "\ufeff",
        "\u00a0",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\r\n\t ",
        "]}",
        "}]",
        '"',
        "'",
    ),
)
"""What stands behind an object or before one."""
PIECES: Final = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbf\xbd",
    b"\0",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
)


@dataclass(frozen=True)
class Sent:
    """A message, with the methods of the client's."""

    content: bytes | None
    named: bytes | None = None
    headed: tuple[tuple[str, bytes | None], ...] = ()

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return self.named

    def headers(self) -> Any:
        return [*self.headed] or None

    def timestamp(self) -> tuple[int, int]:
        return 1, int(SENT.timestamp() * 1000)

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 77


def messages(seed: int, count: int, kinds: dict[str, str]) -> list[Sent]:
    """So many messages of fields by their kinds: `text`, `number`, `time`, `word` or `millis`."""
    random = Random(seed)
    return [_message(random, kinds) for _ in range(count)]


def _message(random: Random, kinds: dict[str, str]) -> Sent:
    value: bytes | None = _object(random, kinds).encode(errors="surrogatepass")
    if random.random() < 0.1:
        for _ in range(random.choice((1, 1, 2, 5))):
            value = mutated(random, value or b"")
    if random.random() < 0.03:
        piece, place = random.choice(PIECES), random.randrange(len(value or b"") + 1)
        value = (value or b"")[:place] + piece + (value or b"")[place:]
    if random.random() < 0.005:
        value = random.choice((None, b"", b" ", b"{}", b"[]", b"null", b"1", b'"text"'))
    headers = tuple(
        (
            random.choice((*("h", "H", "h_bytes", "id", "x", "ü", "") * 4, "\ufffd")),
            random.choice(
                (*(None, b"", b"v", b"7", b"\xff", "ü".encode(), b"\0") * 4, "\ufffd".encode())
            ),
        )
        for _ in range(random.choice((0, 0, 0, 0, 1, 2)))
    )
    return Sent(value, _key(random), headers)


def _key(random: Random) -> bytes | None:
    if random.random() < 0.85:
        return random.choice((None, b"k", b"key 1"))
    return random.choice(
        (b"", b"\0", b"\xff", "ü".encode(), "\ufffd".encode(), b'"', b"\\", b"\n", b"\x7f", *PIECES)
    )


def _object(random: Random, kinds: dict[str, str]) -> str:
    items = [_member(random, name, kind) for name, kind in kinds.items() if _is_there(random, name)]
    if random.random() < 0.1:
        items.append(f'"more":{random.choice((*NESTED, *WORDS))}')
    if random.random() < 0.05:
        items.append(f"{_text(random)}:{random.choice(('1', _text(random), *NESTED))}")
    if random.random() < 0.01:
        depth = random.choice((10, 498, 499, 500, 501, 502, 700, 998, 999, 1_000, 1_001, 1_200))
        name = random.choice(("more", "text"))
        items.append(f'"{name}":{"[" * depth}{"]" * depth}')
    if random.random() < 0.003:
        items.append(f'"{"x" * random.choice((49_990, 50_000, 50_001, 60_000))}":1')
    if random.random() < 0.1:
        random.shuffle(items)
    if random.random() < 0.05 and items:
        items.append(random.choice(items))
    between = random.choice((",", ",", ", ", " , ", ",\n"))
    start, end = random.choice((("{", "}"), ("{", "}"), ("{ ", " }"), ("{\n", "\n}")))
    whole = start + between.join(items) + end
    if random.random() < 0.06:
        whole += random.choice((*BEHIND, whole))
    if random.random() < 0.03:
        whole = random.choice((*BEHIND, " ", "\n", "[")) + whole
    if random.random() < 0.01:
        whole += random.choice(("] {}", "],[" + whole, "," + whole + "]}", "] }"))
    return whole


def _is_there(random: Random, name: str) -> bool:
    return random.random() < (0.99 if name in ("id", "at") else 0.8)


def _member(random: Random, name: str, kind: str) -> str:
    spelled = random.choice((*[name] * 40, name.upper(), name.title()))
    written = json.dumps(spelled)
    if random.random() < 0.01:
        written = f'"\\u{ord(spelled[0]):04x}{spelled[1:]}"'
    return written + random.choice((":", ":", ": ", " : ")) + _value(random, kind)


def _value(random: Random, kind: str) -> str:
    odd = random.random()
    if odd < 0.002:
        return random.choice(WORDS)
    if odd < 0.004:
        return random.choice(NESTED)
    if odd < 0.006:
        return _text(random)
    if odd < 0.02:
        return "null"
    return USUAL[kind](random, odd < 0.05)


def _text(random: Random) -> str:
    parts = random.choice((random.choice(ESCAPED), "a", "é", "\U0001f600", " ", "1, 2", "{"))
    return (
        f'"{"".join(parts)}{"".join(random.choice(ESCAPED) for _ in range(random.randint(0, 2)))}"'
    )


def _number(random: Random, odd: bool) -> str:
    number = random.choice(NUMBERS) if odd else f"{random.randint(-99_999, 99_999) / 1000:.3f}"
    if random.random() < 0.6:
        try:
            json.loads(number)
        except ValueError:
            return json.dumps(number)
        return number
    return json.dumps(number)


def _whole(random: Random, odd: bool) -> str:
    if odd:
        return _number(random, odd)
    number = str(random.randint(-99, 999))
    return number if random.random() < 0.7 else json.dumps(number)


NUMBERS_OF_WORDS: Final = ("1.0", "2", "0", '"TRUE"', '" t "', '"on"', '"İ"', "-1")
USUAL: Final[dict[str, Callable[[Random, bool], str]]] = {
    "text": lambda random, odd: json.dumps(
        random.choice(TEXTS) if odd else "a note", ensure_ascii=random.random() < 0.5
    ),
    "number": _number,
    "comma": lambda random, odd: _number(random, odd).replace(".", ",") if odd else '"-1,25"',
    "whole": _whole,
    "time": lambda random, odd: json.dumps(
        random.choice(TIMES) if odd else f"2026-01-01T10:{random.randint(0, 59):02d}:00Z"
    ),
    "wall": lambda random, odd: json.dumps(
        random.choice(
            (*TIMES, "29.03.2026 02:30", "25.10.2026 02:30", "1.1.2026 1:00", "31.02.2026 10:00")
        )
        if odd
        else f"01.07.2026 {random.randint(0, 23):02d}:30"
    ),
    "word": lambda random, odd: random.choice(
        (*NUMBERS_OF_WORDS, *map(json.dumps, TEXTS))
        if odd
        else ("true", "false", '"yes"', '"N"', "1")
    ),
    "millis": lambda random, odd: (
        _number(random, odd) if odd else str(random.choice((1_767_225_600_000, -(10**13), 10**10)))
    ),
}
