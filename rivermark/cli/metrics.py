"""`rivermark metrics`: metrics for Prometheus, once or served."""

from __future__ import annotations

import sys
from importlib.resources import files
from importlib.util import find_spec
from typing import Annotated

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import err, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.monitor.local_server import LOOPBACK


def metrics(
    streams: Streams = None,
    group: Groups = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Answer over HTTP until Ctrl-C: /metrics, /health.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve at.")] = 9464,
    host: Annotated[str, typer.Option(help="Address to serve at.")] = LOOPBACK,
    rules: Annotated[
        bool, typer.Option("--rules", help="Print Prometheus' rules of alerts.")
    ] = False,
    board: Annotated[bool, typer.Option("--board", help="Print a board for Grafana.")] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Print the metrics of streams in Prometheus' format, or serve them.

    Rows and batches count from the records of batches that there are when it starts. /ready answers
    503 with a sentence for each stream that should run and does not.

    JSON:
        metrics (name, labels, value)

    Examples:
        rivermark metrics --group taxi_events
        rivermark metrics --serve
        rivermark metrics --rules > rivermark.rules.yml
    """
    if rules + board + serve + as_json > 1:
        raise WrongUse("--serve, --rules, --board and --json exclude one another: give one of them")
    if rules or board:
        name = "alerts.yml" if rules else "board.json"
        sys.stdout.write((files("rivermark.monitor.prometheus") / name).read_text())
        return
    if find_spec("prometheus_client") is None:
        raise RivermarkError("metrics need Prometheus' client: pip install 'rivermark[metrics]'")
    # Here, because the client is an extra.
    from rivermark.monitor.prometheus.metrics import DeploymentMetrics
    from rivermark.monitor.prometheus.server import MetricsServer

    collected = DeploymentMetrics(
        settings_for(home), selected(topology(), streams or [], group or [])
    )
    if as_json:
        fields = ("name", "labels", "value")
        rows = [{name: getattr(each, name) for name in fields} for each in collected.samples()]
        print_json({"metrics": rows})
        return
    if not serve:
        sys.stdout.write(collected.text().decode())
        return
    try:
        server = MetricsServer(collected, host, port)
    except OSError as error:
        raise RivermarkError(
            f"metrics cannot be served at {host}:{port}: {error.strerror}; give another --port"
        ) from None
    with server:
        err().print(plain(f"metrics at http://{host}:{server.server_port}/metrics, until Ctrl-C"))
        server.serve_forever()
