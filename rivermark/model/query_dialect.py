"""The dialect of queries (`no_rows_from`): functions and signs that DuckDB and Spark share.

Word by word, not by types: a query that compares text with numbers is each engine's own affair.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from rivermark.model.condition import SqlRefused, Token, advice, tokens

FUNCTIONS: Final = frozenset(
    {"abs", "avg", "coalesce", "count", "date_trunc", "dense_rank", "first_value", "greatest"}
    | {"isnan", "lag", "last_value", "lead", "least", "length", "max", "median", "min", "nullif"}
    | {"rank", "row_number", "size", "sum"}
)
BEFORE_BRACKETS: Final = frozenset(
    {"all", "and", "any", "as", "between", "by", "case", "cross", "distinct", "else", "except"}
    | {"exists", "filter", "from", "having", "in", "intersect", "is", "join", "like", "not", "on"}
    | {"or", "over", "select", "then", "union", "using", "values", "when", "where", "with"}
)
"""Words of the language that a bracket may follow."""

REFUSED: Final = frozenset(
    {"^", "<=>", "==", "::", "//", "&&", "!", "[", "{", '"', "--", "/*", "~", "&", "->", "=>", "%"}
    | {"rlike", "regexp", "ilike", "similar", "glob", "div", "qualify", "lateral", "pivot"}
    | {"unpivot", "tablesample", "asof", "anti", "semi", "positional"}
)
CASTS: Final = ("decimal", "double")
QUOTED: Final = re.compile(r"('(?:[^']|'')*')|`((?:[^`]|``)+)`")


@lru_cache(maxsize=1024)
def check_query(query: str) -> None:
    """Refuse a query with a function or sign that the engines do not share.

    Raises:
        SqlRefused: Which one, and what to write in its place.
    """
    try:
        sql = query.format(batch="batch")
    except (LookupError, ValueError, AttributeError):
        raise SqlRefused("braces stand for {batch} only: write {{ and }} for the signs") from None
    words = tokens(sql)
    for before, token, after in zip([Token("end", ""), *words], words, words[1:], strict=False):
        word = token.keyword
        if word in REFUSED and before.keyword != ".":
            other = "DuckDB and Spark do not read it alike; compute it as a column in the stream"
            raise SqlRefused(f"{token.text!r}: {advice(word, otherwise=other)}")
        if token.kind == "word" and after.keyword == "(" and word not in BEFORE_BRACKETS:
            _check_call(word, before)
        if word == "/" and not (after.keyword == "nullif" or after.text.strip("0.")[:1].isdigit()):
            raise SqlRefused(
                "'/': a division by zero ends the query in one engine only; write a / nullif(b, 0)"
            )
    _check_casts(words)


def _check_call(word: str, before: Token) -> None:
    # After AS and WITH stand types, and names of tables with their columns.
    if word in FUNCTIONS or word == "cast" or before.keyword in ("as", "with"):
        return
    known = f"compute it as a column in the stream; a query may use {', '.join(sorted(FUNCTIONS))}"
    raise SqlRefused(f"function {word}: {advice(word, otherwise=known)}")


def _check_casts(words: list[Token]) -> None:
    """Refuse casts to types that the engines read, or round, each in its own way."""
    open_casts: list[int] = []
    depth = 0
    for token, after in pairwise(words):
        if token.keyword == "(":
            depth += 1
        elif token.keyword == ")":
            depth -= 1
            if open_casts and depth < open_casts[-1]:
                open_casts.pop()
        elif token.keyword == "cast" and after.keyword == "(":
            open_casts.append(depth + 1)
        elif token.keyword == "as" and depth in open_casts[-1:] and after.keyword not in CASTS:
            raise SqlRefused(f"CAST(... AS {after.text}): cast to {' or '.join(CASTS)} only")


def in_duckdb(query: str) -> str:
    """The query with DuckDB's quotes: names in backquotes are so in Spark."""
    return QUOTED.sub(
        lambda m: m[1] or '"' + m[2].replace("``", "`").replace('"', '""') + '"', query
    )
