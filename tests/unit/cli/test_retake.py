"""`rivermark retake` refuses what it cannot read again, before it starts an engine."""

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.topology import Topology
from tests.unit.cli.conftest import Run
from tests.unit.conftest import Put


def test_a_file_that_was_not_read_cannot_be_read_again(rivermark: Run, shop: Topology) -> None:
    result = rivermark("retake", "shop/orders", "a.json")

    assert result.exit_code == 1
    assert "'shop/orders' has read no file 'a.json'" in result.stderr
    assert "rivermark files shop/orders" in result.stderr


def test_a_stream_of_tables_has_no_files_to_read_again(rivermark: Run, shop: Topology) -> None:
    result = rivermark("retake", "shop/hourly", "a.json")

    assert result.exit_code == 2
    assert "'shop/hourly' reads tables, not a source" in result.stderr


def test_the_name_of_a_file_is_shown_whole(rivermark: Run, shop: Topology, put: Put) -> None:
    name = f"{'orders-of-a-shop-' * 5}.json"
    put(INGEST_FILES, {"stream": "shop/orders", "file": name, "path": f"/{name}"})

    assert name in rivermark("retake", "shop/orders", name, "--dry-run").stdout
