"""`rivermark pause` and `rivermark resume`: what a person wants of groups of streams."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import Annotated

import typer

from rivermark.cli.arguments import DryRun, GroupNames, Groups, Home, Json
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import members, settings_for, topology
from rivermark.model.errors import WrongUse
from rivermark.runtime.supervision.desired_state import Desired, DesiredState, DesiredStore

Reason = Annotated[str, typer.Option(metavar="TEXT", help="Recorded for colleagues.")]


def pause(
    groups: GroupNames = None,
    group: Groups = None,
    reason: Reason = "paused from a console",
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Say that a group should rest: its streams stop between batches and are not restarted.

    JSON:
        groups (group, before, state, by, at, reason, problem)

    Examples:
        rivermark pause taxi_events --reason "moving the landing folder"
    """
    changed = write_desired([*(groups or ()), *(group or ())], "paused", reason, home, dry_run)
    if as_json:
        print_json({"groups": list(changed.values())})
        return
    for name, desired in changed.items():
        if dry_run:
            out().print(plain(f"group '{name}' would rest; it is desired {desired['before']} now"))
        else:
            out().print(
                plain(
                    f"group '{name}' should rest. Its run ends within a minute and stays ended "
                    f"until: rivermark resume {name}"
                )
            )


def resume(
    groups: GroupNames = None,
    group: Groups = None,
    reason: Reason = "resumed from a console",
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Say that a group should run: the restart sensor of a running Dagster starts it.

    JSON:
        groups (group, before, state, by, at, reason, problem)

    Examples:
        rivermark resume taxi_events
    """
    changed = write_desired([*(groups or ()), *(group or ())], "run", reason, home, dry_run)
    if as_json:
        print_json({"groups": list(changed.values())})
        return
    for name, desired in changed.items():
        if dry_run:
            out().print(plain(f"group '{name}' would run; it is desired {desired['before']} now"))
        else:
            out().print(
                plain(
                    f"group '{name}' should run. The restart sensor starts it where Dagster runs "
                    f"(make ui); without Dagster: rivermark run --group {name} --continuous"
                )
            )


def write_desired(
    groups: list[str], state: DesiredState, reason: str, home: Home, dry_run: bool
) -> dict[str, dict[str, object]]:
    """Write the desired state of groups, if this is no dry run; what each was `before`.

    Raises WrongUse without a group; UnknownStream lists the groups.
    """
    if not groups:
        raise WrongUse("which group? `rivermark status` lists them")
    declared = topology()
    for name in groups:
        members(declared, name)
    store, by = DesiredStore(settings_for(home).state), getpass.getuser()
    changed: dict[str, dict[str, object]] = {}
    for name in groups:
        before = store.get(name).state
        desired = (
            Desired(state=state, by=by, at=None, reason=reason)
            if dry_run
            else store.set(name, state, by=by, reason=reason)
        )
        changed[name] = {"group": name, "before": before, **asdict(desired)}
    return changed
