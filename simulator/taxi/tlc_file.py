"""A TLC trip file, in whatever layout it was published, as one table of text and numbers.

Layouts: yellow and green records under the names of all years, as Parquet or CSV; extracts with
five columns; the DEBS 2015 file, which has no header and coordinates instead of zones.
"""

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

# Our name, then what files call it; letter case does not matter.
SPELLINGS: Final = {
    "pickup": ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime", "pickup"),
    "dropoff": ("tpep_dropoff_datetime", "lpep_dropoff_datetime", "dropoff_datetime", "dropoff"),
    "pickup_zone": ("pulocationid", "pickup_location_id"),
    "dropoff_zone": ("dolocationid", "dropoff_location_id"),
    "passenger_count": ("passenger_count", "passengers"),
    "fare": ("fare_amount", "fare"),
    "tip": ("tip_amount", "tip"),
    "total": ("total_amount", "total"),
    "vendor": ("vendorid", "vendor_id"),
}

DEBS_2015: Final = (
    "medallion",
    "hack_license",
    "pickup_datetime",
    "dropoff_datetime",
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment_type",
    "fare_amount",
    "surcharge",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "total_amount",
)


class UnknownTripLayout(ValueError):
    """A file without columns of pickup and dropoff times."""


@dataclass(frozen=True, slots=True)
class TlcFile:
    """The columns of a trip file under our names, null where the file has no such column.

    `malformed` counts the lines that have another number of values than the header.
    """

    name: str
    trips: pa.Table
    malformed: int


def read_trips(path: Path) -> TlcFile:
    """Read a .parquet, .csv or .csv.gz file; UnknownTripLayout where it holds no trips."""
    malformed = 0
    if path.suffix == ".parquet":
        names = pyarrow.parquet.read_schema(path).names
        spelled = _find(names, path)
        table = pyarrow.parquet.read_table(path, columns=sorted(spelled.values()))
    else:
        table, malformed = _read_csv(path)
        spelled = _find(table.column_names, path)
    columns = {
        ours: table.column(spelled[ours]).combine_chunks()
        if ours in spelled
        else pa.nulls(table.num_rows, pa.string())
        for ours in SPELLINGS
    }
    return TlcFile(path.name, pa.table(columns), malformed)


def _find(names: list[str], path: Path) -> dict[str, str]:
    by_lower = {name.strip().lower(): name for name in names}
    spelled = {
        ours: by_lower[spelling]
        for ours, spellings in SPELLINGS.items()
        for spelling in reversed(spellings)
        if spelling in by_lower
    }
    if "pickup" not in spelled or "dropoff" not in spelled:
        raise UnknownTripLayout(
            f"{path.name} has no pickup and dropoff times; its columns are {', '.join(names)}"
        )
    return spelled


def _read_csv(path: Path) -> tuple[pa.Table, int]:
    """Every value as text: a guessed type would change with the rows that a file holds."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    first_line = content.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    header = next(csv.reader([first_line]), [])
    if not header:
        raise UnknownTripLayout(f"{path.name} is empty")
    has_header = any(name.strip().lower() in SPELLINGS["pickup"] for name in header)
    if not has_header and len(header) == len(DEBS_2015):
        header = list(DEBS_2015)
    malformed = 0

    def skip(_: object) -> str:
        nonlocal malformed
        malformed += 1
        return "skip"

    table = pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(
            column_names=header, skip_rows=1 if has_header else 0, use_threads=False
        ),
        parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=skip),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    return table, malformed
