"""Reads what a process class declares."""
