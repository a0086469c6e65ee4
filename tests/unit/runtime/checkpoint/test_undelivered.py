"""M032: what a service did not take is shown by a check, and sent again by a command."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark import Output, Stream, Table
from rivermark.lake.schema import create_table
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.runtime.checkpoint.generation import open_generation
from rivermark.runtime.checkpoint.undelivered import send_again
from rivermark.settings import Settings
from rivermark.sinks import WebhookSink
from rivermark.sinks.output import OutputWriter
from tests.unit.sinks.conftest import FARES, fares
from tests.web_service import Reply, Request, serving

SOURCE = Table(name="test/source", schema=FARES.schema, description="s", event_time="at")


def test_m032_what_a_service_refused_is_sent_again_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.sinks.webhook.time.sleep", lambda _: None)
    settings, status = Settings(home=tmp_path), [400]
    lake = settings.lake()

    def answer(_: Request) -> Reply:
        return status[0], b""

    with serving(answer) as service:
        stream = Stream(
            name="test/alerts",
            reads=(SOURCE,),
            build=lambda rows: rows,
            writes=(Output(FARES, sinks=(WebhookSink(url=service.url),)),),
            group="test",
            lateness=timedelta(1),
        )
        create_table(lake, FARES)
        origin = open_generation(lake, stream, 1).origin(stream, "run")
        with closing(OutputWriter(lake, stream.outputs[0], origin)) as writer:
            writer.write(fares((1, 1.0), (2, 2.0)), 0, {})
        check = next(c for c in checks_of_stream(stream) if c.name == "every_row_is_delivered")
        now = datetime.now(UTC)
        observed = check.evaluate(settings, now).observed
        assert "2 in test/fares_undelivered were not delivered; the last: answered 400" in observed
        assert "rivermark dead-letters send test/alerts" in observed

        [planned] = send_again(lake, stream, "run", dry_run=True)
        assert (planned.waiting, planned.delivered) == (2, 0)
        [refused] = send_again(lake, stream, "run")
        assert (refused.delivered, refused.reason) == (0, "answered 400")
        status[0] = 204
        [sent] = send_again(lake, stream, "run")
        assert (sent.waiting, sent.delivered, sent.reason) == (2, 2, None)
        assert send_again(lake, stream, "run") == []
        assert check.evaluate(settings, now).passed
    keys = [r.headers["Idempotency-Key"] for r in service.requests]
    assert len(set(keys)) == 2
