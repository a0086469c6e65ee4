"""Checks, completeness and status of streams, from logs and small reads, without a JVM."""
