"""A Kafka broker on this machine: `python -m setup.kafka_broker start|stop --folder F --port P`.

One process in KRaft mode, controller and broker in one, from the locked JARs of set `kafka`. It
listens on 127.0.0.1 alone, to anybody on this machine, and keeps all that it writes in its folder.
"""

from __future__ import annotations

import socket
import struct
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from uuid import uuid4

from rivermark.setup.ivy import java
from rivermark.setup.jars import CACHE, fetch
from setup.local_server import HOST, ROOT, LocalServer, free_port, run_command

PORT: Final = 9092
FOLDER: Final = ROOT / ".rivermark" / "kafka"
JVM: Final = (
    *("-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""Small, and quick to start: it serves a demo and tests, not a company."""
API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""The request to name its interfaces: what a broker answers once it serves requests."""
PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=BROKER://{host}:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{host}:{controller_port}
log.dirs={folder}/data
auto.create.topics.enable=false
num.partitions=4
log.retention.ms=-1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.backoff.ms=1000
"""
"""Topics are made on purpose: one that a misspelled name makes hides the mistake. They keep what
they hold, whatever its age: messages replayed from the past are older than the usual week."""


@dataclass(frozen=True)
class Broker(LocalServer):
    """A broker by its folder and port."""

    port: int = PORT

    name: ClassVar = "kafka"

    @property
    def use(self) -> str:
        """Its address."""
        return f"Kafka listens on {self.address}"

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _prepare(self) -> None:
        fetch("kafka")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            PROPERTIES.format(
                host=HOST, port=self.port, controller_port=free_port(), folder=self.folder
            )
        )
        self.log.write_text("")
        if not (self.folder / "data" / "meta.properties").exists():
            # Its first letter is ours: a dash there would be taken for an option.
            cluster = "R" + urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")[1:]
            tool = ("format", "--cluster-id", cluster, "--config", str(self._properties))
            self._run(self._program("kafka.tools.StorageTool", *tool))

    def _command(self) -> list[str]:
        return self._program("kafka.Kafka", str(self._properties))

    def _program(self, name: str, *arguments: str) -> list[str]:
        return [java(), *JVM, "-cp", f"{CACHE / 'jars' / 'kafka'}/*", name, *arguments]

    def _is_serving(self) -> bool:
        return is_serving(self.port)


def is_serving(port: int) -> bool:
    """Whether a broker serves requests on the port."""
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(API_VERSIONS)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


if __name__ == "__main__":
    run_command(__doc__ or "", FOLDER, PORT, Broker)
