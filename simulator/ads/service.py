"""The campaign service: `GET /ads/AD` on this machine, answered from a world of ads."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import asdict
from http import HTTPStatus
from urllib.parse import unquote

from simulator.ads.world import AdWorld
from simulator.local_service import Reply, Request, service


def campaign_service(world: AdWorld, port: int = 0) -> AbstractContextManager[str]:
    """Serve the campaigns for as long as the block lasts; yields the URL, of a free port for 0."""

    def respond(request: Request) -> Reply:
        folder, _, ad_id = unquote(request.path).rpartition("/")
        campaign = world.campaign_of(ad_id) if folder == "/ads" else None
        if campaign is None:
            return Reply(HTTPStatus.NOT_FOUND)
        return Reply(body=json.dumps(asdict(campaign)).encode())

    return service(respond, port)
