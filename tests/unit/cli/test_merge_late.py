"""`rivermark merge-late` lists what would be merged, and shows days, rows and money."""

from __future__ import annotations

import pytest

from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.late.days import late_days
from rivermark.backfill.late.run import MergeReport
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, PAYMENTS, SHOP, sent, write
from tests.unit.cli.conftest import Entry, Run


@pytest.fixture
def payments(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> int:
    """The shop of the oracles, with a day of payments; gives the number of late ones."""
    monkeypatch.setattr(
        "rivermark.cli.deployment.entry_points", lambda **_: [Entry("default", SHOP)]
    )
    return len(write(settings, PAYMENTS, sent(1)).late)


def test_a_dry_run_lists_days_and_merges_nothing(
    rivermark: Run, payments: int, settings: Settings
) -> None:
    result = rivermark("merge-late", "--dry-run")

    assert result.exit_code == 0, result.stderr
    assert f"shop/payments  2026-03-02    {payments}  {10 * payments}.00  to be merged" in (
        result.stdout
    )
    assert len(late_days(settings, PAYMENTS)) == 1


def test_the_report_tells_rows_and_money_before_and_after(
    rivermark: Run, payments: int, settings: Settings
) -> None:
    result = rivermark("merge-late", "shop/payments", "--from", "2026-03-02")

    assert result.exit_code == 0, result.stderr
    [line] = [li for li in result.stdout.splitlines() if li.split()[:1] == ["shop/payments"]]
    assert line.split() == [
        "shop/payments", str(FIRST), f"{1440 - payments:,}", str(payments), "1,440",
        f"{14400 - 10 * payments:,}.00", f"{10 * payments}.00", "14,400.00",
    ]  # fmt: skip
    assert f"{payments} late rows merged in" in result.stdout
    assert late_days(settings, PAYMENTS) == []
    assert "no late row is left" in rivermark("merge-late", "--dry-run").stdout


@pytest.mark.usefixtures("payments")
def test_rows_that_were_not_published_end_the_command_with_an_error(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream = DownstreamResult(
        pending={"shop/paid": {FIRST}}, blocked={"shop/paid": "nothing was published, since"}
    )
    blocked = MergeReport("merge", downstream=downstream)
    monkeypatch.setattr("rivermark.backfill.late.run.merge_late", lambda *_, **__: blocked)

    result = rivermark("merge-late")

    assert result.exit_code == 1
    assert "nothing was published, since" in result.stderr
    assert "still open" not in result.stdout
