"""What a reading of the office room's climate is, as published and after a spreadsheet saved it."""

from __future__ import annotations

from typing import Final

from rivermark import Contract, Field, readers

MEASURED: Final = "decimal(12,6)"

OCCUPANCY_COLUMNS: Final = (
    "number",
    "date",
    "Temperature",
    "Humidity",
    "Light",
    "CO2",
    "HumidityRatio",
    "Occupancy",
)

ROOM_READING: Final = Contract(
    fields=(
        Field(
            "event_time",
            "timestamp",
            ("date", "Time"),
            required=True,
            # The second is what a spreadsheet of an American made of the first: month before day.
            read=readers.local_timestamp("UTC", "yyyy-MM-dd HH:mm:ss", "M/d/yy H:mm"),
            description="When it was read; the files name no zone, their clock is taken as UTC.",
        ),
        Field(
            "temperature",
            MEASURED,
            ("Temperature [Celsius]",),
            required=True,
            description="Degrees Celsius.",
        ),
        Field("humidity", MEASURED, ("Humidity [%]",), description="Per cent."),
        Field("light", MEASURED, ("Light [Lux]",), description="Lux."),
        Field("co2", MEASURED, ("CO2 [PPM]",), description="Parts per million."),
        Field("occupancy", "int", ("Occupancy [Binary]",), description="1 if occupied."),
    ),
    event_time="event_time",
)
