"""Event in a topic to alert in a topic: how long after it was due a consumer sees it.

    python -m bench real_time [--rate 5000] [--seconds 300] [--out FILE]

Four processes that do not wait for each other: a broker; the streams `readings/sensor_readings`,
`readings/limits` and `readings/beyond_limits`; a generator, which sends readings to two partitions
by a schedule fixed beforehand, one in ten beyond its limit; and this one, a consumer of the alerts.
A sample is the moment at which an alert is seen less the moment at which its reading was due. So a
generator that is behind counts against the stream. The first `--warm` seconds are reported apart.

A checkpoint holds alerts up, and one that is not measured does not show: `--seconds` must hold two
of them at least. The longest time without any alert is reported beside the percentiles.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.figures import load, options_of, report
from bench.latency import percentiles, started
from bench.process_tree import TreeMeter, end_tree, start_measured
from rivermark.settings import Settings
from rivermark.sinks.real_time import REAL_TIME
from rivermark.testing.landing import land
from setup.kafka_broker import Broker
from setup.local_server import free_port
from simulator.landing.json_lines import json_line

STREAMS: Final = ("readings/sensor_readings", "readings/limits", "readings/beyond_limits")
READINGS: Final = "readings.sensors"
ALERTS: Final = "readings.alerts"
PARTITIONS: Final = 2
SENSORS: Final = 100
BEYOND: Final = 10
"""Of so many readings one is beyond its limit."""
HOT: Final = 90


LINGER_MS: Final = 2
"""How long the generator gathers messages. With 0 each reading is a request of its own, and the
broker takes 0.6 of a core for 5,000/s instead of 0.2; the client's own default is 5."""


def generate(brokers: str, rate: int, began: float, seconds: float) -> None:
    """Send each reading when it is due, late where it must be, but never put off."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": LINGER_MS, "log_level": 0})
    for n in range(round(rate * seconds)):
        due = began + n / rate
        producer.poll(0)
        if (wait := due - time.time()) > 0:
            time.sleep(wait)
        sensor = f"s{n // BEYOND % SENSORS}"
        line = json_line(
            {
                "sensor_id": sensor,
                "event_time": datetime.fromtimestamp(due, UTC),
                "temperature": HOT + 5 if n % BEYOND == 0 else HOT - 20,
                "sequence": n,
            }
        )
        send(producer, sensor.encode(), line)
    producer.flush()


def send(producer: Producer, key: bytes, value: str) -> None:
    """Send a message, as soon as the client has room for it."""
    while True:
        try:
            return producer.produce(READINGS, value, key=key)
        except BufferError:
            producer.poll(0.01)


def consumer_of(brokers: str) -> Consumer:
    """A consumer of the alerts from the first one on."""
    settings = {"group.id": "bench", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50}
    consumer = Consumer({"bootstrap.servers": brokers, "log_level": 0, **settings})
    consumer.subscribe([ALERTS])
    return consumer


def follow(consumer: Consumer, samples: list[tuple[float, int, float]], until: float) -> None:
    """Add each alert that comes: when it was seen, its reading, and when that was due."""
    while (left := until - time.time()) > 0:
        message = consumer.poll(min(left, 0.1))
        if message is None or message.error() is not None:
            continue
        alert = json.loads(message.value() or b"")
        due = datetime.fromisoformat(alert["event_time"]).timestamp()
        samples.append((time.time(), alert["sequence"], due))


def cpu_of(process: psutil.Process) -> float:
    """The CPU seconds of a process so far, without those of its children."""
    times = process.cpu_times()
    return float(times.user + times.system)


def longest_silence(seen: list[float]) -> float:
    """The longest time between two of the moments, in seconds; 0 for less than two."""
    ordered = sorted(seen)
    return max((after - before for before, after in pairwise(ordered)), default=0.0)


def measure(home: Path, broker: Broker, options: Any) -> dict[str, float]:
    """Start the streams, send readings, and follow the alerts."""
    brokers = broker.address
    admin = AdminClient({"bootstrap.servers": brokers})
    topics = [NewTopic(READINGS, PARTITIONS, 1), NewTopic(ALERTS, 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    limits = [
        json_line({"rule": rule, "since": datetime(2026, 1, 1, tzinfo=UTC), "degrees": degrees})
        for rule, degrees in (("hot", HOT), ("freezing", 32))
    ]
    land(Path(Settings(home=home).landing_root) / "readings" / "limits" / "limits.json", limits)
    command = [sys.executable, "-m", "bench.workload", "live", str(home), *STREAMS]
    process = start_measured(command, home / "workload.log", {"READINGS_KAFKA": brokers})
    meter = TreeMeter(psutil.Process(process.pid))
    samples: list[tuple[float, int, float]] = []
    try:
        started(process, meter, options.start)
        consumer = consumer_of(brokers)
        began = time.time() + 3
        whole = options.warm + options.seconds
        arguments = [brokers, str(options.rate), str(began), str(whole)]
        generator = subprocess.Popen(
            [sys.executable, "-m", "bench.real_time", "--generate", *arguments]
        )
        beside = {
            "broker": broker.process(),
            "generator": psutil.Process(generator.pid),
            "consumer": psutil.Process(),
        }

        def spent() -> dict[str, float]:
            others = {name: cpu_of(each) for name, each in beside.items() if each is not None}
            return {"loaded": meter.sample().cpu, **others}

        follow(consumer, samples, began + options.warm)
        before = spent()
        follow(consumer, samples, began + whole - 1)
        cores = {
            f"{name}_cores": round((cpu - before[name]) / (options.seconds - 1), 3)
            for name, cpu in spent().items()
        }
        follow(consumer, samples, began + whole)
        follow(consumer, samples, began + whole + options.patience)
        generator.wait()
        consumer.close()
        if process.poll() is not None:
            raise SystemExit(f"ended early:\n{(home / 'workload.log').read_text()[-3000:]}")
    finally:
        meter.stop()
        end_tree(process)
    first: dict[int, tuple[float, float]] = {}
    for seen, sequence, due in samples:
        first.setdefault(sequence, (seen, due))
    warm = began + options.warm
    expected = -(-round(options.rate * whole) // BEYOND)
    ended = [f.stat().st_mtime for f in home.glob(f"**/{REAL_TIME}/commits/[0-9]*")]
    measured = [seen for seen, due in first.values() if due >= warm]
    return {
        "rate_per_s": options.rate,
        "checkpoints": sum(warm <= at < began + whole for at in ended),
        **cores,
        "alerts": len(first),
        "sent_again": len(samples) - len(first),
        "never_seen": expected - len(first),
        **percentiles([seen - due for seen, due in first.values() if due >= warm], "latency"),
        "longest_silence_s": round(longest_silence(measured), 3),
        **percentiles([seen - due for seen, due in first.values() if due < warm], "warming"),
        "peak_rss_mb": round(meter.cost.peak_rss / 1e6),
        "load_after": load(),
    }


def main() -> None:
    """Measure and report."""
    if sys.argv[1:2] == ["--generate"]:
        brokers, rate, began, seconds = sys.argv[2:]
        generate(brokers, int(rate), float(began), float(seconds))
        return
    parser = options_of(__doc__)
    parser.add_argument("--rate", type=int, default=5_000, help="readings a second")
    parser.add_argument("--start", type=float, default=120, help="longest wait for quiet")
    parser.add_argument("--warm", type=float, default=60, help="seconds of load reported apart")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--patience", type=float, default=10, help="wait for the last alerts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        broker = Broker(Path(folder) / "kafka", free_port(), dies_with_parent=True)
        broker.start()
        try:
            figures = measure(home, broker, options)
        finally:
            broker.stop()
    report("real_time", figures, options.out)


if __name__ == "__main__":
    main()
