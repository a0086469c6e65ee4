import pytest

from rivermark.model.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b]0;title\x07", "a\\x1b[31mred\\x1b]0;title\\x07"),
        ("two\nlines\r\tand a tab", "two\\nlines\\r\\tand a tab"),
        ("\x9b31m C1, \x7f DEL, \x00 NUL", "\\x9b31m C1, \\x7f DEL, \\x00 NUL"),
        ("exe\u202egnp.txt \u2066x\u2069", "exe\\u202egnp.txt \\u2066x\\u2069"),
        (b"caf\xe9".decode(errors="surrogateescape"), "caf\\xe9"),
        ("übrig, 東京, 👩‍💻, [red]x[/red]", "übrig, 東京, 👩‍💻, [red]x[/red]"),
    ],
)
def test_n051_what_a_terminal_would_obey_is_escaped_and_all_else_stays(
    text: str, shown: str
) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_line_ends_of_our_own_texts_may_stay() -> None:
    assert printable("a\nb\x1b", lines=True) == "a\nb\\x1b"
