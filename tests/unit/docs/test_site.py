"""The site has every page in its navigation, and its hooks lead links to where pages stand."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
OF_THE_ROOT = {"repository.md", "contributing.md", "changelog.md", "security.md"}


def test_every_page_is_in_the_navigation_once() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    listed = re.findall(r"^ *- (?:.*: )?([\w/-]+\.md)$", navigation, re.MULTILINE)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}

    assert sorted(listed) == sorted((pages - decisions) | OF_THE_ROOT)


def test_the_packages_of_the_site_are_no_packages_of_the_platform() -> None:
    names = {
        lock: set(re.findall(r"^([\w-]+)==", (ROOT / lock).read_text(), re.MULTILINE))
        for lock in ("requirements.lock", "docs.lock")
    }

    assert "mkdocs" in names["docs.lock"]
    assert not {"mkdocs", "mkdocs-material", "mike"} & names["requirements.lock"]
