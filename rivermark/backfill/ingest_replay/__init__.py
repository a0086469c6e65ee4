"""Admission replayed over the raw rows: what the door would decide by other rules or a lateness."""
