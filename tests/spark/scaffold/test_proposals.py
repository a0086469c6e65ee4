"""A proposal admits the sample that it was made of, whatever the format."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.model.ingest import Ingest
from rivermark.runtime.supervision.run import run_bounded
from rivermark.scaffold.guess import guess_contract
from rivermark.scaffold.sample import read_sample
from rivermark.scaffold.stream_module import module_text
from rivermark.settings import Settings

ROWS: list[dict[str, Any]] = [
    {
        "order id": f"{n:04}",
        "at": datetime(2026, 3, 2, 8, 30 - n, tzinfo=UTC),
        "price": Decimal(n) / 4,
        "weight": n / 7,
        "voucher": None if n % 2 else "MARCH",
        "paid": n % 3 == 0,
        "lines": [{"drink": "tea", "n": n}],
    }
    for n in range(20)
]
CSV = "order id;at;price;weight;paid;day;size\n" + "".join(
    f"{n:04};0{n % 9 + 1}.03.2026 08:{n:02};{n},50;{n / 7:.3f};{n % 2 == 0};2026-03-{n + 1:02};"
    f"{'NA' if n == 3 else n}\n"
    for n in range(20)
)


def samples(folder: Path) -> dict[str, Path]:
    folder.mkdir()
    table = pa.Table.from_pylist(ROWS)
    table = table.append_column("day", pa.array([row["at"].date() for row in ROWS]))
    files = {name: folder / f"sample{name}" for name in (".csv", ".csv.gz", ".jsonl", ".parquet")}
    files[".csv"].write_text(CSV)
    files[".csv.gz"].write_bytes(gzip.compress(CSV.replace(";", "\t").encode()))
    files[".jsonl"].write_text(
        "".join(
            f'{{"id": "{n:04}", "ts": {1_772_000_000_000 + n * 1000}, "amount": {n}.5, "n": {n}, '
            f'"_meta": {{"a": [1, 2.50]}}, "flags": {"null" if n % 2 else n}}}\n'
            for n in range(20)
        )
    )
    pq.write_table(table, files[".parquet"])
    write_deltalake(folder / "delta", table)
    return {**files, "delta": folder / "delta"}


def proposed(name: str, place: Path) -> Ingest:
    sample = read_sample(str(place), name)
    names: dict[str, Any] = {}
    text = module_text(name, place.name, sample, guess_contract(sample), None)
    exec(compile(text, name, "exec"), names)  # noqa: S102 - what was just proposed
    (ingest,) = (value for value in names.values() if isinstance(value, Ingest))
    return ingest


def test_a_proposal_admits_its_own_sample(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    ingests = []
    for form, place in samples(tmp_path / "samples").items():
        name = f"proposed/of_{form.strip('.').replace('.', '_')}"
        ingests.append(proposed(name, place))
        if place.is_file():
            landed = Path(settings.landing_root, name, place.name)
            landed.parent.mkdir(parents=True)
            landed.write_bytes(place.read_bytes())
            os.utime(landed, (1_775_000_000, 1_775_000_000))

    done = run_bounded(spark, settings, Topology(ingests), ingests, run_id="proposals")

    counted = {name: (each.admitted, each.late, each.quarantined) for name, each in done.items()}
    assert counted == {ingest.name: (20, 0, 0) for ingest in ingests}
    types = {field.name: field.type.simpleString() for field in ingests[3].contract.fields}
    assert types["price"].startswith("decimal")
    assert (types["order_id"], types["at"], types["day"]) == ("string", "timestamp", "timestamp")
