"""`rivermark pause` and `rivermark resume`: what a person wants of groups of streams."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import Annotated

import typer

from rivermark.cli.arguments import DryRun, GroupNames, Groups, Home, Json
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.model.errors import WrongUse
from rivermark.model.topology import Topology
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
    """Pause a group: its streams stop between batches and are not restarted.

    JSON:
        groups (group, before, state, by, at, reason, problem)

    Examples:
        rivermark pause taxi_events --reason "moving the landing folder"
    """
    set_desired(
        [*(groups or ()), *(group or ())],
        "paused",
        reason,
        home,
        dry_run=dry_run,
        as_json=as_json,
        wanted="be paused",
        then="Its run ends within a minute and stays ended until: rivermark resume {group}",
    )


def resume(
    groups: GroupNames = None,
    group: Groups = None,
    reason: Reason = "resumed from a console",
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Resume a group: the restart sensor of a running Dagster starts it.

    JSON:
        groups (group, before, state, by, at, reason, problem)

    Examples:
        rivermark resume taxi_events
    """
    set_desired(
        [*(groups or ()), *(group or ())],
        "run",
        reason,
        home,
        dry_run=dry_run,
        as_json=as_json,
        wanted="run",
        then=(
            "The restart sensor starts it where Dagster runs (make ui); without Dagster: "
            "rivermark run --group {group} --continuous"
        ),
    )


def set_desired(
    groups: list[str],
    state: DesiredState,
    reason: str,
    home: Home,
    *,
    dry_run: bool,
    as_json: bool,
    wanted: str,
    then: str,
) -> None:
    """Write the desired state of groups, if this is no dry run, and say what was desired before.

    Raises WrongUse without a group; UnknownStream lists the groups.
    """
    if not groups:
        raise WrongUse("no group was named: `rivermark status` lists them")
    declared = topology()
    for name in groups:
        _check_group(declared, name)
    store, by = DesiredStore(settings_for(home).state), getpass.getuser()
    changed = []
    for name in groups:
        before = store.get(name).state
        desired = (
            Desired(state=state, by=by, at=None, reason=reason)
            if dry_run
            else store.set(name, state, by=by, reason=reason)
        )
        changed.append({"group": name, "before": before, **asdict(desired)})
        if not as_json:
            would = f"group '{name}' would {wanted}; it is desired {before} now"
            does = f"group '{name}' should {wanted}. {then.format(group=name)}"
            out().print(plain(would if dry_run else does))
    if as_json:
        print_json({"groups": changed})


def _check_group(declared: Topology, name: str) -> None:
    """Refuse the name of a stream: whole groups are paused, since they share a run."""
    stream = next((each for each in declared.streams if each.name == name), None)
    if stream is not None:
        raise WrongUse(
            f"'{name}' is a stream, but only whole groups are paused and resumed; its group is "
            f"'{stream.group}'"
        )
    declared.group(name)
