"""A broker of this machine: what is refused, and whose process is stopped, without starting one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rivermark.setup.ivy import Problem
from setup.kafka_broker import Broker, is_serving
from setup.local_server import HOST, free_port, is_free


def test_a_port_that_is_taken_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(Problem, match=rf"port {port} .* is taken .*KAFKA_PORT="):
            Broker(tmp_path / "kafka", port).start()
    assert not (tmp_path / "kafka").exists()


def test_another_process_that_has_the_id_of_a_former_broker_is_left_alone(tmp_path: Path) -> None:
    broker = Broker(tmp_path, free_port())
    (tmp_path / "kafka.pid").write_text(str(os.getpid()))

    assert broker.process() is None
    assert not broker.stop()
    assert not (tmp_path / "kafka.pid").exists()
    assert not is_serving(broker.port)
