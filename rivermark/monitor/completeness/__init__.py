"""Completeness of days."""
