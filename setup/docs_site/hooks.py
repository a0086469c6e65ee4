"""Hooks of MkDocs: pages of the root folder, links that leave docs/, and diagrams offline."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
ROOT_PAGES: Final = {
    "README.md": "repository.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages beside docs/, and where they stand on the site."""
SOURCES: Final = {page: ROOT / name for name, page in ROOT_PAGES.items()}
SCRIPTS: Final = ROOT / ".cache" / "docs-scripts"
"""What setup/docs.sh fetches, which Material would have loaded from another host."""
MERMAID: Final = SCRIPTS / "mermaid.js"
WORKER: Final = SCRIPTS / "iframe-worker.js"
FOLDER: Final = "assets/javascripts"
HISTORY: Final = ("decisions/0", "changelog", "operations/cases", "performance/")
"""Pages that a search lists last: a search is for how things are now."""
LINK: Final = re.compile(r"\[([^\]\[]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
AS_TEXT: Final = "The diagram is shown as its source: this build had no Mermaid.\n\n```text"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root folder, and the scripts that were fetched."""
    for page, source in SOURCES.items():
        files.append(File.generated(config, page, abs_src_path=str(source)))
    fetched = [script for script in (MERMAID, WORKER) if script.exists()]
    for script in fetched:
        place = f"{FOLDER}/{script.name}"
        files.append(File.generated(config, place, abs_src_path=str(script)))
    # Lets the search work where the site is opened as files.
    config.extra["polyfills"] = [f"{FOLDER}/{WORKER.name}"] if WORKER in fetched else []
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Lead links to where their targets stand on the site; without Mermaid diagrams are text."""
    name = page.file.src_uri
    source = SOURCES.get(name, DOCS / name)
    if name.startswith(HISTORY):
        page.meta["search"] = {"boost": 0.2}

    def moved(link: re.Match[str]) -> str:
        text, place, anchor = link[1], link[2], link[3] or ""
        target = (source.parent / place).resolve()
        if "://" in place or not target.exists():
            return link[0]
        inside = ROOT_PAGES.get(str(target.relative_to(ROOT)))
        if inside is None and target.is_relative_to(DOCS):
            inside = str(target.relative_to(DOCS))
        if inside is not None:
            return f"[{text}]({os.path.relpath(inside, Path(name).parent)}{anchor})"
        path = target.relative_to(ROOT)
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
        return text if str(path) in text else f"{text} (`{path}`)"

    markdown = LINK.sub(moved, markdown)
    return markdown if MERMAID.exists() else markdown.replace("```mermaid", AS_TEXT)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load Mermaid from the site itself, on pages with diagrams only."""
    if 'class="mermaid"' not in output:
        return output
    script = os.path.relpath(f"{FOLDER}/{MERMAID.name}", Path(page.file.dest_uri).parent)
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)
