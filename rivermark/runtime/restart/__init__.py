"""Restarts of groups of streams."""
