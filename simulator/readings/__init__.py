"""Readings of made-up sensors."""
