"""The pages that show results: stored runs and the static site drawn from them (Data Docs)."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import great_expectations as gx
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context import set_context
from great_expectations.data_context.types.base import DataContextConfig, ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)

from rivermark.quality.gx.offline_docs import make_self_contained, stored_runs, write_index

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.data_context import AbstractDataContext
    from great_expectations.data_context.store import ValidationResultsStore
    from great_expectations.datasource.fluent.interfaces import Batch
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_CONTEXTS: dict[Path, AbstractDataContext] = {}


def data_context(root: Path) -> AbstractDataContext:
    """The data context whose results and pages lie in `root`; one for each folder and process.

    Its configuration lives in memory and only results and pages are files: a process that is killed
    leaves no half-written configuration behind, and two processes have none to overwrite.
    """
    root = root.resolve()
    if root not in _CONTEXTS:
        root.mkdir(parents=True, exist_ok=True)
        _CONTEXTS[root] = gx.get_context(mode="ephemeral", project_config=_configuration(root))
    set_context(_CONTEXTS[root])
    return _CONTEXTS[root]


@contextmanager
def opened(root: Path, df: DataFrame, table: str) -> Iterator[Batch]:
    """The rows as a batch of Great Expectations, which forgets them afterwards.

    No Spark configuration is given, or it might stop the session to apply it, and nothing is
    persisted, since it never lets go of what it caches.
    """
    sources = data_context(root).data_sources
    source = sources.add_or_update_spark("lake", persist=False)
    try:
        # Queries must run where the rows' temporary view is, not in the process's first session.
        source.get_execution_engine().spark = df.sparkSession
        asset = source.add_dataframe_asset(table.replace("/", "."))
        rows = asset.add_batch_definition_whole_dataframe("the version read")
        yield rows.get_batch(batch_parameters={"dataframe": df})
    finally:
        sources.delete("lake")


def publish(
    root: Path, result: ExpectationSuiteValidationResult, *, version: int, keep: int
) -> Path | None:
    """Store a result, forget the suite's oldest beyond `keep`, draw its page and return its path.

    The index reads every stored result (great_expectations issue 8243), about 1 ms each: hence
    `keep`. What is drawn opens without a network. None if the page could not be drawn: Great
    Expectations logs why.
    """
    context = data_context(root)
    store = context.validation_results_store
    run = RunIdentifier(run_name=f"version-{version}", run_time=datetime.now(UTC))
    suite = ExpectationSuiteIdentifier(name=result.suite_name)
    key = ValidationResultIdentifier(
        batch_identifier=result.batch_id, expectation_suite_identifier=suite, run_id=run
    )
    # What a checkpoint would note, and the name that the pages look for.
    result.meta["run_id"] = run
    result.meta["validation_time"] = run.run_time
    result.meta["batch_spec"]["data_asset_name"] = result.asset_name
    with _held(root):
        store.store_validation_results(
            suite_validation_result=result,
            suite_validation_result_identifier=key,
            expectation_suite_identifier=suite,
        )
        _forget_oldest(store, suite, keep=keep)
        # Drawing the index also removes the pages of results that are gone.
        context.build_data_docs(resource_identifiers=[key])
        _remove_empty_folders(root)
        pages = root / "pages"
        for page in pages.rglob("*.html"):
            make_self_contained(page)
        write_index(pages, stored_runs(root / "results", pages))
        urls = context.get_docs_sites_urls(resource_identifier=key)
    page = Path(url2pathname(urlsplit(urls[0]["site_url"] or "").path))
    if not page.is_file():
        logger.warning("no page for %s at version %s was drawn", result.suite_name, version)
        return None
    return page


def _forget_oldest(
    store: ValidationResultsStore, suite: ExpectationSuiteIdentifier, *, keep: int
) -> None:
    keys: list[Any] = store.list_keys()  # typed as keys of any store
    runs = [k for k in keys if k.expectation_suite_identifier == suite]
    for old in sorted(runs, key=lambda k: k.run_id.run_time)[:-keep]:
        store.remove_key(old)  # type: ignore[no-untyped-call]


def _remove_empty_folders(root: Path) -> None:
    # A removed result leaves the folders of its version and time behind: two for each run.
    for folder, _, _ in os.walk(root, topdown=False):
        if not any(Path(folder).iterdir()):
            Path(folder).rmdir()


@contextmanager
def _held(root: Path) -> Iterator[None]:
    # Checks of several runs, each a process, write to one site.
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _configuration(root: Path) -> DataContextConfig:
    def files(folder: str) -> dict[str, Any]:
        return {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(root / folder),
        }

    memory = {"class_name": "InMemoryStoreBackend"}
    return DataContextConfig(
        config_version=4.0,
        stores={
            "expectations_store": {"class_name": "ExpectationsStore", "store_backend": memory},
            "validation_definition_store": {
                "class_name": "ValidationDefinitionStore",
                "store_backend": memory,
            },
            "checkpoint_store": {"class_name": "CheckpointStore", "store_backend": memory},
            "results": {
                "class_name": "ValidationResultsStore",
                "store_backend": files("results"),
            },
        },
        expectations_store_name="expectations_store",
        validation_results_store_name="results",
        checkpoint_store_name="checkpoint_store",
        data_docs_sites={
            "pages": {
                "class_name": "SiteBuilder",
                "show_how_to_buttons": False,
                "store_backend": files("pages"),
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            }
        },
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )
