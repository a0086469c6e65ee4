"""Definitions of your own beside those of the streams: `dg scaffold defs dagster.asset NAME.py`."""
