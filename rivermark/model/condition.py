"""The dialect of conditions: the SQL that DuckDB and Spark read alike, parsed when it is declared.

    rank = 1 AND coalesce(tips, 0) = 0
    window_end <> window_start + INTERVAL 1 HOUR
    CASE WHEN is_start THEN pickup_zone ELSE dropoff_zone END IS NULL

The result is a tree; `rivermark.quality.condition_sql` writes it for either of them, by the types
of the table's columns. What is not in this grammar is refused: `^`, `div`, `rlike`, `"text"` and
most functions are missing in one of them, or mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, Literal

FUNCTIONS: Final = (
    "abs",
    "coalesce",
    "greatest",
    "if",
    "isnan",
    "least",
    "length",
    "nullif",
    "size",
)

INSTEAD: Final = {
    "rlike": "use expect.matches_regex",
    "regexp": "use expect.matches_regex",
    "regexp_like": "use expect.matches_regex",
    "regexp_matches": "use expect.matches_regex",
    "ilike": "write x LIKE 'a%' OR x LIKE 'A%'",
    "similar": "use expect.matches_regex",
    "glob": "write x LIKE 'a%'",
    "concat": "write a || b, which is NULL where one of them is",
    "nvl": "write coalesce(a, b)",
    "ifnull": "write coalesce(a, b)",
    "startswith": "write x LIKE 'a%'",
    "starts_with": "write x LIKE 'a%'",
    "endswith": "write x LIKE '%a'",
    "ends_with": "write x LIKE '%a'",
    "contains": "write x LIKE '%a%'",
    "char_length": "write length(x)",
    "cardinality": "write size(x)",
    "len": "write length(x) of text, size(x) of a list",
    "div": "write a / b, or compute the column in the stream",
    "mod": "write a % b",
    "datediff": "write a > b + INTERVAL 1 DAY",
    "isnull": "write x IS NULL",
    "isnotnull": "write x IS NOT NULL",
    "to_date": "write DATE '2019-03-01', or compute the column in the stream",
    "to_timestamp": "write TIMESTAMP '2019-03-01 00:00:00', or compute the column in the stream",
    "<=>": "write IS NOT DISTINCT FROM",
    "==": "write =",
    "^": "write the product out, as x * x",
    "::": "write CAST(x AS DOUBLE)",
    "//": "write a / b",
    "&&": "write AND",
    "!": "write NOT",
    "[": "compute the column in the stream",
    "{": "compute the column in the stream",
    '"': "write 'text', or `name` for a column",
    "--": "leave the comment out",
    "/*": "leave the comment out",
}

UNITS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
KEYWORDS: Final = frozenset(
    {"and", "as", "between", "case", "cast", "date", "else", "end", "false", "in", "interval", "is"}
    | {"like", "not", "null", "or", "then", "timestamp", "true", "when"}
)
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
DEEPEST: Final = 40
TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_0-9.]))
    |(?P<word>[^\W\d]\w*)
    |`(?P<name>(?:[^`]|``)+)`
    |'(?P<text>(?:[^']|'')*)'
    |(?P<sign><=>|<>|!=|<=|>=|\|\||::|//|==|&&|--|/\*|->|=>|[-+*/%=<>(),.^~&|!?:;@#$"\[\]{}\\])
    )""",
    re.VERBOSE,
)

Kind = Literal["number", "word", "name", "text", "sign", "end"]


class SqlRefused(ValueError):
    """What in a condition or query is not of the dialect, and what to write in its place."""


@dataclass(frozen=True)
class Token:
    """A word, sign or literal; `name` is one in backquotes."""

    kind: Kind
    text: str

    @property
    def keyword(self) -> str:
        """The word in lower case, or the sign."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


@dataclass(frozen=True)
class Column:
    """A column, or with more than one part a field inside of it."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """A literal; times as `date` and `datetime`, spans as microseconds, decimals as text."""

    kind: Literal["number", "text", "boolean", "null", "date", "instant", "span"]
    value: str | bool | int | date | datetime | None


@dataclass(frozen=True)
class Call:
    """An operator or a function; `form` is the type of a CAST."""

    name: str
    arguments: tuple[Node, ...]
    form: str = ""


Node = Column | Constant | Call


def tokens(sql: str) -> list[Token]:
    """The words, signs and literals of a text of SQL, and its end."""
    listed: list[Token] = []
    at, text = 0, sql.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise SqlRefused(f"{text[at:].split()[0]!r} cannot be read")
        at, kind, value = match.end(), match.lastgroup, match[match.lastgroup]
        if kind == "text":
            value = value.replace("''", "'")
            if "\\" in value or "${" in value:
                raise SqlRefused(f"'{value}': a text has neither \\ nor ${{; use expect.in_set")
        if kind == "name":
            value = value.replace("``", "`")
        listed.append(Token(kind, value))  # type: ignore[arg-type]
    return [*listed, Token("end", "its end")]


@lru_cache(maxsize=1024)
def parsed(condition: str) -> Node:
    """The condition as a tree.

    Raises:
        SqlRefused: Something in it is not of the dialect.
    """
    parser = _Parser(tokens(condition))
    tree = parser.expression()
    if parser.next.kind != "end":
        raise parser.refusal()
    return tree


def advice(word: str, *, otherwise: str) -> str:
    """What to write in place of a function or sign that the dialect does not have."""
    return INSTEAD.get(word, otherwise)


class _Parser:
    def __init__(self, listed: list[Token]) -> None:
        self._tokens = listed
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def refusal(self) -> SqlRefused:
        token = self.next
        if token.kind == "end":
            return SqlRefused("it ends too early: a column, a value or a ')' must follow")
        known = "conditions are columns, literals, comparisons, AND, OR, NOT, + - * / %, IN, LIKE, "
        known += f"BETWEEN, IS NULL, CASE WHEN and {', '.join(FUNCTIONS)}"
        return SqlRefused(f"{token.text!r} is not read: {advice(token.keyword, otherwise=known)}")

    def _took(self, *words: str) -> bool:
        """Step over these words, if they come next."""
        following = self._tokens[self._at : self._at + len(words)]
        if [token.keyword for token in following] != list(words):
            return False
        self._at += len(words)
        return True

    def _take(self, word: str) -> None:
        if not self._took(word):
            raise self.refusal()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise SqlRefused(f"brackets lie more than {DEEPEST} deep")
        tree = self._joined(("or",), lambda: self._joined(("and",), self._negation))
        self._depth -= 1
        return tree

    def _joined(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        tree = part()
        while (sign := self.next.keyword) in signs:
            self._at += 1
            # One node for a long list of conditions, which may be longer than Python calls deep.
            if isinstance(tree, Call) and tree.name == sign and sign in ("and", "or"):
                tree = Call(sign, (*tree.arguments, part()))
            else:
                tree = Call(sign, (tree, part()))
        return tree

    def _negation(self) -> Node:
        negations = 0
        while self._took("not"):
            negations += 1
        tree = self._predicate()
        return Call("not", (tree,)) if negations % 2 else tree

    def _predicate(self) -> Node:
        left = self._sum()
        sign = "<>" if self.next.keyword == "!=" else self.next.keyword
        if sign in COMPARISONS:
            self._at += 1
            tree: Node = Call(sign, (left, self._sum()))
        elif self._took("is"):
            tree = self._is(left)
        else:
            negated = self._took("not")
            tree = self._membership(left, negated=negated)
            if tree is left:
                return left
            tree = Call("not", (tree,)) if negated else tree
        if self.next.keyword in (*COMPARISONS, "!=", "is"):
            raise SqlRefused(f"{self.next.text!r} after a comparison: put that into brackets")
        return tree

    def _is(self, left: Node) -> Node:
        negated = self._took("not")
        if self._took("null"):
            tree = Call("is null", (left,))
        elif self._took("true"):
            tree = Call("is true", (left,))
        elif self._took("false"):
            tree = Call("is true", (Call("not", (left,)),))
        elif self._took("distinct", "from"):
            tree = Call("is distinct", (left, self._sum()))
        else:
            raise self.refusal()
        return Call("not", (tree,)) if negated else tree

    def _membership(self, left: Node, *, negated: bool) -> Node:
        if self._took("between"):
            low = self._sum()
            self._take("and")
            return Call("and", (Call(">=", (left, low)), Call("<=", (left, self._sum()))))
        if self._took("in"):
            self._take("(")
            return Call("in", (left, *self._list()))
        if self._took("like"):
            if self.next.kind != "text":
                raise SqlRefused("LIKE is followed by a text, as 'a%'")
            pattern = self._primary()
            return Call("like", (left, pattern))
        if negated:
            raise self.refusal()
        return left

    def _sum(self) -> Node:
        return self._joined(
            ("||",),
            lambda: self._joined(("+", "-"), lambda: self._joined(("*", "/", "%"), self._signed)),
        )

    def _signed(self) -> Node:
        negative = False
        while self.next.keyword in ("+", "-"):
            negative ^= self.next.keyword == "-"
            self._at += 1
        tree = self._primary()
        if negative and isinstance(tree, Constant) and tree.kind == "number":
            return Constant("number", f"-{tree.value}")
        return Call("negative", (tree,)) if negative else tree

    def _primary(self) -> Node:
        token = self.next
        if token.kind == "number":
            self._at += 1
            return Constant("number", token.text)
        if token.kind == "text":
            self._at += 1
            if self.next.kind == "text":
                raise SqlRefused("two texts in a row: write 'a' || 'b'")
            return Constant("text", token.text)
        if self._took("("):
            tree = self.expression()
            self._take(")")
            return tree
        if token.keyword in KEYWORDS:
            return self._keyword()
        if token.kind not in ("word", "name"):
            raise self.refusal()
        self._at += 1
        if token.kind == "word" and self._took("("):
            return self._call(token)
        parts = [token.text]
        while self._took("."):
            if self.next.kind not in ("word", "name"):
                raise self.refusal()
            parts.append(self.next.text)
            self._at += 1
        return Column(tuple(parts))

    def _call(self, token: Token) -> Node:
        name = token.keyword
        if name not in FUNCTIONS:
            known = (
                "compute it as a column in the stream; a condition may use "
                f"{', '.join(FUNCTIONS)} and CAST"
            )
            raise SqlRefused(f"function {name}: {advice(name, otherwise=known)}")
        arguments = self._list()
        least, most = {
            "nullif": (2, 2),
            "if": (3, 3),
            "coalesce": (1, 99),
            "greatest": (2, 99),
            "least": (2, 99),
        }.get(name, (1, 1))
        if not least <= len(arguments) <= most:
            raise SqlRefused(f"function {name} does not take {len(arguments)} arguments")
        return Call("case", arguments) if name == "if" else Call(name, arguments)

    def _list(self) -> tuple[Node, ...]:
        """Expressions up to the closing bracket."""
        items = [self.expression()]
        while self._took(","):
            items.append(self.expression())
        self._take(")")
        return tuple(items)

    def _keyword(self) -> Node:
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._took(word):
                return Constant("null" if value is None else "boolean", value)
        if self._took("case"):
            return self._case()
        if self._took("cast"):
            self._take("(")
            return self._cast()
        if self._took("interval"):
            return self._interval()
        token, after = self._tokens[self._at : self._at + 2]
        if token.keyword not in ("date", "timestamp") or after.keyword == "(":
            raise self.refusal()
        self._at += 1
        if after.kind != "text":
            return Column((token.text,))
        self._at += 1
        return _time(token.keyword, after.text)

    def _case(self) -> Node:
        if self.next.keyword != "when":
            raise SqlRefused("CASE is followed by WHEN: write CASE WHEN x = 1 THEN ...")
        arguments: list[Node] = []
        while self._took("when"):
            arguments.append(self.expression())
            self._take("then")
            arguments.append(self.expression())
        arguments.append(self.expression() if self._took("else") else Constant("null", None))
        self._take("end")
        return Call("case", tuple(arguments))

    def _cast(self) -> Node:
        value = self.expression()
        self._take("as")
        form, sizes = self.next.keyword, ""
        if form not in ("double", "int", "bigint", "decimal"):
            raise SqlRefused(f"CAST(... AS {self.next.text}): cast to DOUBLE or DECIMAL(p, s) only")
        self._at += 1
        if form == "decimal":
            self._take("(")
            while not self._took(")"):
                if self.next.kind != "number" and self.next.keyword != ",":
                    raise self.refusal()
                sizes += self.next.text
                self._at += 1
            if not re.fullmatch(r"\d{1,2}(,\d{1,2})?", sizes):
                raise SqlRefused("a decimal is written DECIMAL(12, 2)")
        self._take(")")
        return Call("cast", (value,), f"{form}({sizes})" if sizes else form)

    def _interval(self) -> Node:
        token = self.next
        if token.kind == "number" or (token.kind == "text" and token.text.isdigit()):
            self._at += 1
            unit = self.next.keyword.removesuffix("s")
            if token.text.isdigit() and len(token.text) <= 9 and unit in UNITS:
                self._at += 1
                return Constant("span", int(token.text) * UNITS[unit] * 1_000_000)
        raise SqlRefused("an interval is written INTERVAL 2 HOURS (SECONDS, MINUTES, HOURS, DAYS)")


def _time(word: str, text: str) -> Constant:
    try:
        if word == "date":
            return Constant("date", date.fromisoformat(text))
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SqlRefused(f"{word.upper()} '{text}' is no ISO date or time") from None
    zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return Constant("instant", zoned)
