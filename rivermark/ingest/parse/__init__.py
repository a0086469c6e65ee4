"""Payloads become typed columns."""
