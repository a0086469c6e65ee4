"""docs/operations/settings.md lists what the settings say of themselves.

Run as a script, it writes the table of the page:

    PYTHONPATH=. python tests/unit/docs/test_settings_page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from rivermark.settings import PREFIX, Settings

PAGE: Final = Path(__file__).parents[3] / "docs" / "operations" / "settings.md"
TABLE: Final = "| variable | default, unit | meaning |\n| --- | --- | --- |\n"
"""The head of the table that is generated; the rest of the page is written by hand."""


def shown_default(field: FieldInfo) -> str:
    """A default as it is written in the environment."""
    value = field.default
    if value is None or value in ("", (), {}):
        return "none"
    return f"`{json.dumps(value)}`" if isinstance(value, bool) else f"`{value}`"


def rows() -> Iterator[str]:
    """A row of the table for each setting."""
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        unit = f" {extra['unit']}" if isinstance(extra, dict) else ""
        default = shown_default(field) + unit
        yield f"| `{PREFIX}{name.upper()}` | {default} | {field.description} |"


def page() -> str:
    """The page with the table as it should be."""
    before, _, after = PAGE.read_text().partition(TABLE)
    _, _, after = after.partition("\n\n")
    return f"{before}{TABLE}" + "\n".join(rows()) + f"\n\n{after}"


def test_the_page_says_what_the_settings_say() -> None:
    assert PAGE.read_text() == page(), "run this test's module as a script"


def test_every_setting_has_a_description_that_is_a_sentence() -> None:
    texts = {name: field.description or "" for name, field in Settings.model_fields.items()}

    assert [name for name, text in texts.items() if len(text) < 20 or not text.endswith(".")] == []


def test_every_setting_whose_name_ends_in_a_unit_states_it() -> None:
    units = {"seconds", "days", "bytes", "memory"}
    named = {
        name: field.json_schema_extra
        for name, field in Settings.model_fields.items()
        if name.rsplit("_", 1)[-1] in units
    }

    assert len(named) > 6
    assert [name for name, unit in named.items() if not unit] == []


if __name__ == "__main__":
    PAGE.write_text(page())
