"""New code for a stream that has state: tried on the batches that wait, and taken back if it fails.

The code as it is declared now is compared with the state before anything stops. Then the stream and
the streams that read its tables stop, a savepoint is taken, and the new code drains what waits. If
it fails, state and tables are those of the savepoint again: their readers were stopped, and
have read no row of the new code.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rivermark.model.errors import RivermarkError, StreamFailed
from rivermark.model.stream import AnyStream
from rivermark.restart import NoRestart
from rivermark.runtime.savepoint.guard import fit_of
from rivermark.runtime.savepoint.manifest import manifest_of
from rivermark.runtime.savepoint.obstacles import direct_readers
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import check_local, lease_when_stopped, take, written_by
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.run import run_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class UpgradeTakenBack(RivermarkError):
    """New code failed; the stream is as it was before."""


@dataclass(frozen=True, kw_only=True)
class Upgraded:
    """An upgrade: the savepoint from before, and the batches that the new code has finished."""

    stream: str
    savepoint: str
    batches: int


def upgrade(order: Order, stream: AnyStream, spark: SparkSession, *, by: str) -> Upgraded:
    """Let a stream go on with the code as it is declared now, or leave it as it was.

    Its group, and those of the streams that read its tables, are paused meanwhile, and desired to
    run again afterwards if they were before. Broken off, they stay paused: the same command goes
    on. With `dry_run` of the order only the state is compared.

    Raises:
        RivermarkError: The state does not fit, before anything was stopped.
        UpgradeTakenBack: The new code failed on its first batches; the groups stay paused.
    """
    settings, on_step = order.settings, order.on_step
    check_local(settings.lake())
    on_step("comparing the code with the state")
    fit = fit_of(spark, stream, manifest_of(settings, stream, written_by(stream)))
    if fit.kind != "compatible":
        raise RivermarkError(f"{fit}. Nothing was stopped")
    if order.dry_run:
        return Upgraded(stream=stream.name, savepoint="", batches=0)
    readers = direct_readers(order.topology, stream)
    store = DesiredStore(settings.state)
    before = {each.group: store.get(each.group) for each in (stream, *readers)}

    def run_again(reason: str) -> None:
        for group, desired in before.items():
            if desired.state == "run":
                store.set(group, "run", by=by, reason=reason)

    for group in before:
        store.set(group, "paused", by=by, reason=f"upgrade of {stream.name}")
    with ExitStack() as held:
        try:
            for each in readers:
                held.enter_context(lease_when_stopped(settings, each, order.run_id, on_step))
            with lease_when_stopped(settings, stream, order.run_id, on_step):
                made = take(settings, stream, on_step=on_step)
        except BaseException:
            run_again(f"the upgrade of {stream.name} could not begin")
            raise
        on_step("trying the new code on what waits")
        tried = replace(stream, restart=NoRestart())
        try:
            ran = run_bounded(spark, settings, order.topology, [tried], run_id=order.run_id)
        except StreamFailed as error:
            held.close()
            on_step("going back")
            try:
                resume(order, stream, made.id)
            except RivermarkError as obstacle:
                raise RivermarkError(
                    f"the new code of stream '{stream.name}' failed ({error.reason}), and it "
                    f"cannot go back to savepoint {made.id}: {obstacle}. Its groups stay paused"
                ) from error
            raise UpgradeTakenBack(
                f"the new code of stream '{stream.name}' failed, and the stream is at batch "
                f"{made.batch} again as before, by savepoint {made.id}. Put the former code in its "
                f"place, then: rivermark resume {' '.join(before)}. The failure: {error.reason}"
            ) from error
    run_again(f"upgrade of {stream.name} is done")
    batches = ran[stream.name].batches
    return Upgraded(stream=stream.name, savepoint=made.id, batches=batches)
