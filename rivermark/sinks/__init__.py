"""Targets of results outside the lake."""
