"""The campaign service: `GET /ads/AD` on this machine, answered from a world of ads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final
from urllib.parse import unquote

from simulator.ads.world import AdWorld

HOST: Final = "127.0.0.1"


@contextmanager
def campaign_service(world: AdWorld, port: int = 0) -> Iterator[str]:
    """Serve the campaigns for as long as the block lasts; yields the URL, of a free port for 0."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one packet.
        wbufsize = -1

        def do_GET(self) -> None:
            folder, _, ad_id = unquote(self.path).rpartition("/")
            campaign = world.campaign_of(ad_id) if folder == "/ads" else None
            body = b"{}" if campaign is None else json.dumps(asdict(campaign)).encode()
            self.send_response(404 if campaign is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A line for each request would be of no use."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server((HOST, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
