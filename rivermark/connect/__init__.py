"""Clients of outside services, and their settings: for sources, sinks and enrichment alike."""
