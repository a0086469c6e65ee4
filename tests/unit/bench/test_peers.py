"""The bench's own code: which outputs are equal, whose turn it is, what a line says."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from bench.all import BEGIN, END, table, warm_batches
from bench.peers.__main__ import parsed, parser, turns
from bench.peers.compare import difference
from bench.peers.cost import line, spread
from bench.peers.engines import ENGINES
from bench.peers.events import end_of, prepare
from bench.peers.feed import prepare_lines
from bench.peers.jobs import duck, streams
from bench.peers.keyed_events import KEY_OF, keys_of, prepare_keyed
from bench.peers.measured import Run
from bench.peers.report import put
from bench.peers.workloads import BEGIN as FIRST_MOMENT

SIZE = 2000


def output(folder: Path, *rides: tuple[int, int]) -> Path:
    folder.mkdir()
    rows = [{"ride_id": ride, "driver_id": 1, "start_ms": at} for ride, at in rides]
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")
    return folder


def run(events: int, cpu: float, wrong: str = "") -> Run:
    return Run("duckdb", "join", events, events, 0, cpu, cpu, 1, 0.0, "abc", wrong)


def test_equal_rows_in_another_order_are_equal(tmp_path: Path) -> None:
    one = output(tmp_path / "one", (1, FIRST_MOMENT), (2, FIRST_MOMENT + 1))
    other = output(tmp_path / "other", (2, FIRST_MOMENT + 1), (1, FIRST_MOMENT))

    assert difference("long_rides", SIZE, one, other) == ""


def test_a_row_too_often_is_a_difference(tmp_path: Path) -> None:
    twice = output(tmp_path / "twice", (1, FIRST_MOMENT), (1, FIRST_MOMENT))
    once = output(tmp_path / "once", (1, FIRST_MOMENT))

    assert difference("long_rides", SIZE, twice, once) == "0 of 1 rows are missing, 1 are too many"
    assert difference("long_rides", SIZE, once, twice) == "1 of 2 rows are missing, 0 are too many"


def test_no_output_is_a_difference_even_to_none(tmp_path: Path) -> None:
    some = output(tmp_path / "some", (1, FIRST_MOMENT))
    (tmp_path / "none").mkdir()
    beyond = output(tmp_path / "beyond", (1, end_of(SIZE) + 1))

    assert difference("long_rides", SIZE, tmp_path / "none", some) == "no output in none"
    assert difference("long_rides", SIZE, beyond, beyond) == "the reference has no rows"


def test_closing_rows_count_on_neither_side(tmp_path: Path) -> None:
    closed = output(tmp_path / "closed", (1, FIRST_MOMENT), (-1, end_of(SIZE) + 1))
    plain = output(tmp_path / "plain", (1, FIRST_MOMENT))

    assert difference("long_rides", SIZE, closed, plain) == ""


def test_the_events_are_the_same_each_time_and_in_every_layout(tmp_path: Path) -> None:
    rows = prepare(tmp_path / "one", SIZE)
    prepare(tmp_path / "two", SIZE)

    for name in ("rides", "fares", "readings"):
        first = pq.read_table(tmp_path / "one" / "parquet" / name)
        assert first.equals(pq.read_table(tmp_path / "two" / "parquet" / name))
        lake = DeltaTable(str(tmp_path / "one" / "lake" / "tables" / "bench" / name))
        assert lake.to_pyarrow_table().equals(first)
        assert rows[name] == first.num_rows
    counted = prepare_lines(tmp_path / "one", "rides", SIZE)
    lines = (tmp_path / "one" / "json" / "rides" / "part-00000.json").read_text().splitlines()
    assert counted == {"rides": len(lines)} == {"rides": rows["rides"]}


def test_broken_and_late_lines_of_the_feed_win_no_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_lines(tmp_path, "feed", SIZE)
    *in_time, late = sorted((tmp_path / "json" / "feed" / "parts").iterdir())
    tips: dict[tuple[int, int], float] = {}
    broken = 0
    for text in [text for part in in_time for text in part.read_text().splitlines()]:
        try:
            fare = json.loads(text)
            at = datetime.fromisoformat(fare["event_time"])
            hour, tip = int(at.timestamp()) // 3600 + 1, fare["tip"] + 0.0
            tips[hour, fare["driver_id"]] = tips.get((hour, fare["driver_id"]), 0.0) + tip
        except (ValueError, KeyError, TypeError):
            broken += 1
    winners: dict[int, tuple[float, int]] = {}
    for (hour, driver), tip in tips.items():
        winners[hour] = max(winners.get(hour, (-1.0, 0)), (tip, -driver))
    first = FIRST_MOMENT // 1000
    late_times = [json.loads(line)["event_time"] for line in late.read_text().splitlines()]

    monkeypatch.setattr(sys, "argv", ["duck", "winners", str(tmp_path), str(tmp_path / "out")])
    duck.main()

    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert broken == SIZE // 100
    assert len(late_times) == SIZE // 100
    assert all(datetime.fromisoformat(at).timestamp() < first for at in late_times)
    assert {
        row["window_end_ms"] // 3_600_000: (row["sum_tips"], -row["driver_id"])
        for row in rows
        if row["window_end_ms"] <= end_of(SIZE)
    } == {hour: best for hour, best in winners.items() if hour * 3_600_000 <= end_of(SIZE)}


def test_rows_of_pathway_are_read_from_its_lines(tmp_path: Path) -> None:
    reference = output(tmp_path / "reference", (1, FIRST_MOMENT))
    (tmp_path / "pathway").mkdir()
    line = {"ride_id": 1, "driver_id": 1, "start_ms": FIRST_MOMENT, "diff": 1, "time": 2}
    (tmp_path / "pathway" / "part-0.jsonl").write_text(json.dumps(line) + "\n")

    assert difference("long_rides", SIZE, tmp_path / "pathway", reference) == ""


def test_a_key_keeps_its_events_in_order_in_every_layout(tmp_path: Path) -> None:
    rows = prepare_keyed(tmp_path, SIZE)

    for name, key in KEY_OF.items():
        folder = tmp_path / "parquet" / name
        arrived = pq.read_table(folder).select([key, "event_ms"]).to_pylist()
        assert rows[name] == len(arrived) == SIZE + 1
        halves = [
            pq.read_table(tmp_path / "split" / name / part).select([key, "event_ms"]).to_pylist()
            for part in ("p0.parquet", "p1.parquet")
        ]
        # The closing row is in both.
        assert sorted(map(str, [*halves[0][:-1], *halves[1]])) == sorted(map(str, arrived))
        for number, half in enumerate(halves):
            assert {row[key] % 2 for row in half[:-1]} == {number}
            assert half[-1][key] == -1
        assert arrived[-1]["event_ms"] > end_of(SIZE)
    by_sensor: dict[int, list[int]] = {}
    for row in pq.read_table(tmp_path / "parquet" / "wide_readings").to_pylist():
        by_sensor.setdefault(row["sensor_id"], []).append(row["event_ms"])
    assert all(times == sorted(set(times)) for times in by_sensor.values())
    assert keys_of(1_000_000) == 200_000


def test_engines_take_turns_and_begin_with_another_one_each_time() -> None:
    options = parsed(
        ["--only", "join", "--engines", "duckdb,polars", "--sizes", "10", "--repeats", "2"]
    )

    assert [t.engine for t in turns(options)] == ["duckdb", "polars", "polars", "duckdb"]


def test_engines_are_asked_only_what_their_jobs_can_answer() -> None:
    for name, engine in ENGINES.items():
        if engine.module in ("spark_state", "flink_process"):
            assert engine.workloads == ("long_rides",), name
        elif engine.options == ("process",):
            assert set(engine.workloads) <= set(streams.PROCESSES), name


def test_an_unknown_engine_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--engines", "storm"])

    assert "storm: not among rivermark" in capsys.readouterr().err


def test_fixed_and_marginal_cost_come_from_three_sizes() -> None:
    runs = [run(events, 20 + 3 * events / 1e6) for events in (100_000, 1_000_000, 5_000_000)]

    cost = line(runs)

    assert cost is not None
    assert cost.fixed == pytest.approx(20)
    assert cost.per_million == pytest.approx(3)
    assert line(runs[:2]) is None


def test_a_run_whose_output_differs_has_no_time() -> None:
    right = spread([run(10, 1.0), run(10, 9.0, wrong="3 rows too many")], lambda r: r.cpu)

    assert right is not None
    assert (right.median, right.count) == (1.0, 1)
    assert spread([run(10, 9.0, wrong="ended with 1")], lambda r: r.cpu) is None


def test_a_table_replaces_only_what_lies_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n")

    put(page, BEGIN, END, "new")

    assert page.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nbehind\n"


def test_rows_without_a_measurement_say_so() -> None:
    assert table({}).count("| not measured |  |") == len(table({}).splitlines()) - 4


def test_rows_name_the_commit_and_the_machine_that_they_are_of() -> None:
    runs = [
        Run(engine, "door", size, size, 0, 1.0, 10 + cost * size / 1e6, 1, 0.0, "abc")
        for engine, cost in (("rivermark", 4), ("flink", 3))
        for size in (100_000, 1_000_000, 5_000_000)
    ]
    machine = {"commit": "abc", "processor": "one"}
    batches = {"live_1000000": {"batch_ms_1_percent": [700, 800, 1900], "peak_rss_mb": 2600}}

    text = table(
        {
            "lines": {"figures": {"runs": [vars(run) for run in runs]}, "machine": machine},
            "live_keys": {"figures": batches, "machine": machine | {"processor": "two"}},
        }
    )

    assert "| rivermark 4.0, flink 3.0 | abc (1) |" in text
    assert "| 0.80 / 1.90 s, 2.6 GB | abc (2) |" in text
    assert text.endswith("(1) one, (2) two.")


def test_a_warm_batch_is_read_at_a_thousand_rows() -> None:
    batches = [
        {"stream": kind, "sink": sink, "rows": rows, "cpu_seconds": rows / 1000 + cost}
        for kind, cost in (("stateless", 0.1), ("windowed", 0.2))
        for sink in ("native", "ours")
        for rows in (0, 1000, 10_000)
    ]

    assert warm_batches({"batches": batches}) == "1.10 s / 1.20 s"
    with pytest.raises(KeyError, match="windowed"):
        warm_batches({"batches": batches[:6]})
