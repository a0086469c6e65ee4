"""The page's table and chart of ours beside the peers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import machine, write_figures
from bench.peers.chart import draw
from bench.peers.cost import line, spread
from bench.peers.engines import ENGINES
from bench.peers.measured import Run
from bench.peers.sections import Section
from bench.peers.workloads import WORKLOADS


def write_page(runs: Sequence[Run], section: Section) -> None:
    """Put the tables between the section's markers, and the chart beside the other pictures."""
    if not any(not run.wrong for run in runs):
        raise SystemExit("there are no runs to report; take some first")
    picture = section.page.parent.parent / "images" / f"{section.name}.svg"
    draw(runs, picture)
    write_medians(section.medians, runs)
    chart = f"![CPU seconds](../images/{picture.name})"
    text = "\n\n".join([described(runs), costs(runs), lines(runs), chart])
    put(section.page, section.begin, section.end, text)


def put(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what lies between two markers; they must be there."""
    before = page.read_text()
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(before):
        raise SystemExit(f"{page} has no place for it: it lacks {begin}")
    page.write_text(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", before))


def write_medians(out: Path, runs: Sequence[Run]) -> None:
    """Medians and spread of every cell as JSON, and every single run."""
    figures: dict[str, Any] = {
        f"{workload}_{engine}_{size}_cpu_seconds": cpu.median
        for (workload, engine, size), of in cells(runs).items()
        if (cpu := spread(of, lambda run: run.cpu))
    }
    write_figures(out, "peers", {**figures, "runs": [vars(run) for run in runs]})


def cells(runs: Sequence[Run]) -> dict[tuple[str, str, int], list[Run]]:
    """The runs by workload, engine and size, in the order of the page."""
    by_cell: dict[tuple[str, str, int], list[Run]] = {}
    order = {name: place for place, name in enumerate([*WORKLOADS, *ENGINES])}
    for run in sorted(runs, key=lambda r: (order[r.workload], r.size, order[r.engine])):
        by_cell.setdefault(run.cell, []).append(run)
    return by_cell


def described(runs: Sequence[Run]) -> str:
    """Machine, versions, load."""
    this = machine()
    loads = sorted(run.load for run in runs)
    versions = ", ".join(f"{name} {number}" for name, number in this["versions"].items())
    commits = ", ".join(sorted({run.commit for run in runs}))
    return (
        f"{this['cores']} cores ({this['processor']}), {this['memory_gb']} GB, Python "
        f"{this['python']}, {this['java']}, {versions}, Flink 2.3.0; commit {commits}. Load before "
        f"a run: {loads[0]} to {loads[-1]}, median {loads[len(loads) // 2]}."
    )


def costs(runs: Sequence[Run]) -> str:
    """CPU seconds, wall seconds and memory: a table a workload, of the engines that ran it."""
    by_cell = cells(runs)
    tables = ["CPU seconds (smallest-largest of the repeats) / wall seconds / peak MB:"]
    for workload in dict.fromkeys(workload for workload, _, _ in by_cell):
        of = [run for run in runs if run.workload == workload]
        engines = [name for name in ENGINES if any(run.engine == name for run in of)]
        titles = " | ".join(ENGINES[name].title for name in engines)
        rows = [
            f"| {WORKLOADS[workload].title}, events | {titles} |",
            "| ---: |" + " ---: |" * len(engines),
        ]
        for size, events in sorted({(run.size, run.events) for run in of}):
            figures = [cell(by_cell.get((workload, engine, size), [])) for engine in engines]
            rows.append(f"| {events:,} | {' | '.join(figures)} |")
        tables.append("\n".join(rows))
    return "\n\n".join(tables)


def cell(runs: Sequence[Run]) -> str:
    """One engine's figures, or why there are none."""
    if not runs:
        return ""
    if any(run.wrong for run in runs):
        return "output differs"
    cpu, wall = spread(runs, lambda run: run.cpu), spread(runs, lambda run: run.wall)
    peak = max(run.peak_mb for run in runs)
    assert cpu is not None
    assert wall is not None
    width = f" ({cpu.low:.1f}-{cpu.high:.1f})" if cpu.count > 1 else ""
    return f"**{cpu.median:.1f}**{width} / {wall.median:.1f} / {peak:,}"


def lines(runs: Sequence[Run]) -> str:
    """Fixed and marginal cost of each engine that was run at three sizes."""
    rows = [
        "| workload | engine | fixed CPU-s | CPU-s per million events | events per CPU-s |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for workload in WORKLOADS:
        for engine in ENGINES:
            cost = line(r for r in runs if (r.workload, r.engine) == (workload, engine))
            if cost is not None:
                rate = f"{1e6 / cost.per_million:,.0f}" if cost.per_million > 0 else "-"
                rows.append(
                    f"| {WORKLOADS[workload].title} | {ENGINES[engine].title} "
                    f"| {cost.fixed:.1f} | {cost.per_million:.2f} | {rate} |"
                )
    if len(rows) == 2:
        return "Fixed and marginal cost need three sizes."
    return "\n".join(rows)
