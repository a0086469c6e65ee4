"""`rivermark notify`: a test notice to each receiver."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from rivermark.cli.arguments import Home, Json
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import settings_for
from rivermark.cli.exit_codes import ExitCode
from rivermark.connect.notices import described
from rivermark.model.errors import RivermarkError
from rivermark.runtime.restart.notification import Receivers, run


def notify(as_json: Json = False, home: Home = None) -> None:
    """Send a test notice to each receiver, and say which of them took it.

    The receivers are the command of RIVERMARK_NOTIFY_COMMAND and the addresses of
    RIVERMARK_NOTIFY_TO. The exit code is 1 if one of them fails.

    JSON:
        receivers (receiver, error)

    Examples:
        rivermark notify
    """
    settings = settings_for(home)
    receivers = Receivers(settings.notify_command, settings.notify_to)
    commands = receivers.commands()
    if not commands:
        raise RivermarkError(
            "no receiver of notices: set RIVERMARK_NOTIFY_TO to a JSON list of addresses, or "
            "RIVERMARK_NOTIFY_COMMAND to a command (docs/operations/streams-in-dagster.md)"
        )
    names = [" ".join(settings.notify_command)] if settings.notify_command else []
    names += [described(address) for address in settings.notify_to]
    message = (
        f"a test of rivermark's notices, sent at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC with home "
        f"{settings.home}; nothing is wrong"
    )
    results = []
    with err().status("Sending"):
        for name, command in zip(names, commands, strict=True):
            error = run(command, "test", message, over=False, variables=receivers.variables())
            results.append({"receiver": name, "error": error})
    if as_json:
        print_json({"receivers": results})
    else:
        for each in results:
            color = "red" if each["error"] else ""
            out().print(plain(f"{each['receiver']}: {each['error'] or 'taken'}", color))
    if any(each["error"] for each in results):
        raise typer.Exit(ExitCode.FAULT)
