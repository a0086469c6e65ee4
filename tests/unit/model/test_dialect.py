"""What patterns, conditions and queries of suites may say, and what is refused when declared."""

from __future__ import annotations

import re

import pytest

from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.pattern import in_both
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite


def refusal(expectation: Expectation) -> str:
    with pytest.raises(DeclarationError) as refused:
        Suite("test/sensors", (expectation,))
    return str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("(?!x).*", "no_rows_where"),
        ("(?<=x)y", "no_rows_where"),
        (r"(a)\1", "write the group out"),
        (r"(?<x>a)\k<x>", "without a name"),
        ("(?P<x>a)", "without a name"),
        ("a++", r"write +"),
        ("(?>a)", "only (?i), (?s)"),
        ("a(?i)b", "only at the start"),
        ("(?m)^a", "only (?i), (?s)"),
        (r"\h", r"write [ \t]"),
        (r"\Z", "write $"),
        (r"\Aa", "write ^"),
        (r"\bx", "neighbouring characters"),
        (r"\R", r"(\r\n|\n|\r)"),
        (r"\Qa.b\E", "a backslash before each sign"),
        (r"\p{L}+", "list the characters"),
        ("[[:alpha:]]+", "list the characters"),
        ("[a-z&&[^a]]+", "list the characters"),
        ("[a[bc]]", "list the characters"),
        ("[]a]", "not closed, or empty"),
        ("[a", "not closed"),
        ("[z-a]", "ends before it begins"),
        (r"[a-\d]", "of two characters"),
        ("a{1,2000}", "at most 1,000"),
        ("((a{50}){50})", "at most 1,000"),
        ("a{2", r"write \{"),
        ("a{,5}", r"write \{"),
        ("}", r"write \}"),
        ("a**", "inner one in brackets"),
        ("^*", "leave it out"),
        ("(a", "not closed"),
        ("a)", r"write \)"),
        ("a\\", "the character itself"),
        (r"\x{110000}", "no character"),
        ("\ud800", "no character"),
    ],
)
def test_n061_a_pattern_that_one_engine_cannot_read_is_refused_with_what_to_write(
    pattern: str, advice: str
) -> None:
    message = refusal(expect.matches_regex("sensor", pattern))

    assert message.startswith(f"suite 'test/sensors', rule 'sensor looks like {pattern}': ")
    assert advice in message


@pytest.mark.parametrize(
    ("pattern", "matches", "differs"),
    [
        ("CARD.", ("CARDS", "CARD\r", "CARD\u2028"), ("CARD", "CARD\n", "CARDS\n")),
        ("(?s)a.b", ("a\nb", "a\u0085b"), ("ab",)),
        (r"a\sb", ("a\vb", "a\nb", "a b"), ("a\u00a0b", "a\u0085b")),
        (r"\S\D\W\w", ("ab!d", "\u00e9\u00e9\u00e9_"), ("a1!d", "abc\u00e9")),
        ("(?i)[\u00e4k]", ("K", "k", "\u00e4"), ("\u00c4", "\u212a")),
        ("(?i)ca[^x]", ("CAr", "cAR"), ("CAX", "cax")),
        (r"^\$[0-9]{2,3}?$", ("$12", "$123"), ("12", "$1234", "$12\n")),
        (r"[\-\]\\^.]|[x-]+", ("-", "]", "\\", "^", ".", "x-x"), ("a",)),
        (r"\u00e9\x41\x{1F600}", ("\u00e9A\U0001f600",), ("eA",)),
        ("|(?:a|b)?", ("", "a", "b"), ("ab",)),
        ("a{0}b", ("b",), ("ab",)),
    ],
)
def test_n060_a_pattern_means_what_is_written_down(
    pattern: str, matches: tuple[str, ...], differs: tuple[str, ...]
) -> None:
    # Python reads the written form as the engines do, but for the braces of a code.
    written = re.sub(r"\\x\{(\w+)\}", lambda m: rf"\U{int(m[1], 16):08x}", in_both(pattern))
    compiled = re.compile(written.replace(r"\z", r"\Z"))

    assert [text for text in matches if not compiled.search(text)] == []
    assert [text for text in differs if compiled.search(text)] == []


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("note rlike 'x'", "expect.matches_regex"),
        ("to_date(note) > DATE '2019-01-01'", "function to_date: write DATE '2019-03-01'"),
        ("datediff(a, b) > 1", "function datediff: write a > b + INTERVAL 1 DAY"),
        ("startswith(note, 'x')", "function startswith: write x LIKE 'a%'"),
        ("a div b > 1", "write a / b"),
        ("a // b > 1", "write a / b"),
        ("a <=> b", "IS NOT DISTINCT FROM"),
        ("a == b", "write ="),
        ('note = "x"', "write 'text', or `name`"),
        ("v ^ 2 > 4", "x * x"),
        ("log(v) > 1", "function log: compute it as a column in the stream"),
        ("concat(x, NULL) IS NULL", "function concat: write a || b"),
        ("substring(x, 0, 1) = 'a'", "function substring: compute"),
        ("extract(dow FROM at) = 1", "function extract"),
        ("split(note, ',')[0] = 'a'", "function split"),
        ("items[0] = 1", "compute the column in the stream"),
        ("hash(note) = 1", "function hash"),
        ("upper(note) = 'A'", "function upper"),
        ("current_timestamp() > at", "function current_timestamp"),
        ("cast(v AS string) = '1'", "DOUBLE or DECIMAL"),
        ("v::int = 1", "CAST(x AS DOUBLE)"),
        ("v = 1 -- all", "leave the comment out"),
        ("note = 'a\\n'", "expect.in_set"),
        ("note = 'a' 'b'", "write 'a' || 'b'"),
        ("note LIKE other", "LIKE is followed by a text"),
        ("note NOT 'x'", "is not read"),
        ("v = 1 = true", "put that into brackets"),
        ("CASE v WHEN 1 THEN true END", "CASE WHEN x = 1"),
        ("at > TIMESTAMP 'yesterday'", "no ISO date or time"),
        ("at > b + INTERVAL 1 MONTH", "INTERVAL 2 HOURS"),
        ("nullif(v) = 1", "does not take 1 arguments"),
        ("v > 1L", "cannot be read"),
        ("(v > 1", "it ends too early"),
        ("v > 1)", "')' is not read"),
        ("(" * 200 + "v > 1" + ")" * 200, "more than 40 deep"),
        ("", "it ends too early"),
        ("SELECT 1", "is not read"),
    ],
)
def test_n061_a_condition_outside_of_the_dialect_is_refused_with_what_to_write(
    condition: str, advice: str
) -> None:
    message = refusal(expect.no_rows_where(condition, name="the rule"))

    assert message.startswith("suite 'test/sensors', rule 'the rule': ")
    assert advice in message


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("SELECT * FROM {batch} WHERE a rlike 'x'", "expect.matches_regex"),
        ("SELECT to_date(a) FROM {batch}", "function to_date"),
        ("SELECT a / b FROM {batch}", "write a / nullif(b, 0)"),
        ('SELECT "a" FROM {batch}', "write 'text', or `name`"),
        ("SELECT * FROM {batch} WHERE a ^ 2 > 4", "x * x"),
        ("SELECT cast(a AS int) FROM {batch}", "decimal or double only"),
        ("SELECT a % b FROM {batch}", "'%'"),
        ("SELECT collect_list(a) FROM {batch}", "function collect_list"),
        ("SELECT a FROM {batch} QUALIFY rank() OVER (ORDER BY a) = 1", "QUALIFY"),
        ("SELECT * FROM {batch} WHERE a = '{x}'", "write {{ and }} for the signs"),
        ("SELECT * FROM {batch} WHERE a = '{'", "write {{ and }} for the signs"),
    ],
)
def test_n061_a_query_is_refused_by_the_functions_and_signs_in_it(query: str, advice: str) -> None:
    message = refusal(expect.no_rows_from(query, name="the rule"))

    assert message.startswith("suite 'test/sensors', rule 'the rule': ")
    assert advice in message


def test_queries_of_shared_functions_are_declared() -> None:
    query = """
        WITH days AS (SELECT `end`, count(*) AS n, sum(a) FILTER (WHERE a > 0) AS s
                      FROM {batch} AS t GROUP BY `end`)
        SELECT *, cast(n AS decimal(12, 2)) / 4 AS q, n / nullif(s, 0) AS r,
               lag(n) OVER (PARTITION BY s ORDER BY n DESC) AS before, '{{x}}' AS braces
        FROM days WHERE n IN (SELECT max(n) FROM days) AND NOT (s IS NULL)
    """

    assert Suite("test/sensors", expectations=(expect.no_rows_from(query, name="q"),)).rules


def test_a_column_with_a_dot_or_a_value_of_another_type_is_refused() -> None:
    assert "column 'a.b'" in refusal(expect.between("a.b", 0))
    assert "column 'a.b'" in refusal(expect.matches_regex("a.b", "x", allow_null_share=1.0))
    with pytest.raises(DeclarationError, match="texts, whole numbers or booleans"):
        expect.in_set("v", [1, "a"])
    with pytest.raises(DeclarationError, match=r"is 1\.5; expected a text, a whole number or True"):
        expect.in_set("v", [1.5])  # type: ignore[list-item]
