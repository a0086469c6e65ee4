"""A Kafka broker on this machine: `python -m setup.kafka_broker start|stop --folder F --port P`.

One process in KRaft mode, controller and broker in one, from the locked JARs of set `kafka`. It
listens on 127.0.0.1 alone, to anybody on this machine, and keeps all that it writes in its folder.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import struct
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import psutil

from setup.ivy import ROOT, Problem, java
from setup.jars import CACHE, fetch

HOST: Final = "127.0.0.1"
PORT: Final = 9092
FOLDER: Final = ROOT / ".rivermark" / "kafka"
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 30.0
JVM: Final = (
    *("-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""Small, and quick to start: it serves a demo and tests, not a company."""
CHILDREN: Final[list[subprocess.Popen[bytes]]] = []
"""What this process has started. A broker is to outlive it, so none is waited for."""
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
"""
"""Topics are made on purpose: one that a misspelled name makes hides the mistake. They keep what
they hold, whatever its age: messages replayed from the past are older than the usual week."""


@dataclass(frozen=True)
class Broker:
    """A broker by its folder and port; `start` and `stop` may be called by different processes.

    `dies_with_parent`: it ends with the process that starts it, however that ends.
    """

    folder: Path
    port: int = PORT
    dies_with_parent: bool = False

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / "broker.log"

    def process(self) -> psutil.Process | None:
        """Its process, while that runs."""
        try:
            process = psutil.Process(int(self._pid_file.read_text()))
            # A process id is used again: only one that was started with our file is ours.
            is_ours = str(self._properties) in process.cmdline()
        except (OSError, ValueError, psutil.Error):
            return None
        return process if is_ours and process.status() != psutil.STATUS_ZOMBIE else None

    def start(self) -> None:
        """Start it, and return when it serves requests; nothing happens where it runs already.

        Raises:
            Problem: the port is taken, or the broker ends or says nothing within two minutes.
        """
        if self.process() is not None:
            return
        if not is_free(self.port):
            raise Problem(
                f"port {self.port} of {HOST} is taken by another program: stop that, or take "
                "another port (make kafka KAFKA_PORT=9192)"
            )
        fetch("kafka")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            PROPERTIES.format(
                host=HOST, port=self.port, controller_port=free_port(), folder=self.folder
            )
        )
        self.log.write_text("")
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()
        with self.log.open("ab") as log:
            started = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                # Ctrl-C in the terminal is not meant for it.
                start_new_session=True,
            )
        CHILDREN.append(started)
        self._pid_file.write_text(str(started.pid))
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.port):
            if started.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Problem(f"the broker did not start:\n{self._last_words()}")
            time.sleep(0.1)

    def stop(self) -> bool:
        """Stop it, and return when it is gone; False where none was running."""
        process = self.process()
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(STOP_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return process is not None

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "broker.pid"

    def _command(self, program: str, *arguments: str) -> list[str]:
        tied = ["setpriv", "--pdeathsig", "KILL"] if self.dies_with_parent else []
        if tied and shutil.which(tied[0]) is None:
            tied = []
        return [*tied, java(), *JVM, "-cp", f"{CACHE / 'jars' / 'kafka'}/*", program, *arguments]

    def _format(self) -> None:
        """Write the cluster's id into the data folder, as a broker expects it."""
        # Its first letter is ours: a dash there would be taken for an option.
        cluster = "R" + urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")[1:]
        arguments = ("format", "--cluster-id", cluster, "--config", str(self._properties))
        with self.log.open("ab") as log:
            done = subprocess.run(
                self._command("kafka.tools.StorageTool", *arguments),
                stdout=log,
                stderr=log,
                timeout=START_SECONDS,
                check=False,
            )
        if done.returncode:
            raise Problem(f"the broker's folder could not be made:\n{self._last_words()}")

    def _last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a port can be listened on."""
    with socket.socket() as probe:
        # As brokers do it: connections of one that has ended may linger.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether a broker serves requests on the port."""
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(API_VERSIONS)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    broker = Broker(options.folder.resolve(), options.port)
    try:
        if options.action == "stop":
            print("stopped" if broker.stop() else "no broker of this project is running")
            return
        broker.start()
    except Problem as problem:
        sys.exit(f"rivermark kafka: {problem}")
    process = broker.process()
    print(
        f"Kafka listens on {broker.address} (process {process.pid if process else '?'}, data and "
        f"log in {broker.folder}); stop it with: make kafka-stop"
    )


if __name__ == "__main__":
    main()
