"""The table of contents: everything that Dagster knows of this project."""

from __future__ import annotations

from pathlib import Path

from rivermark.dagster.loading import without_collections

with without_collections():
    import dagster as dg

    from assets.topology import TOPOLOGY
    from jobs import JOBS
    from resources import RESOURCES
    from rivermark.dagster import definitions

    defs = dg.Definitions.merge(
        definitions(TOPOLOGY),
        dg.Definitions(
            jobs=JOBS,
            resources=RESOURCES,
            # Of assets that are materialized from their pages: jobs of streams bring their own.
            executor=dg.in_process_executor,
        ),
    )
    # The folder of `dg scaffold defs`: a look at it costs a third of a second.
    if [path for path in Path(__file__).with_name("defs").iterdir() if path.stem[:2] != "__"]:
        own = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
        defs = dg.Definitions.merge(defs, own)
