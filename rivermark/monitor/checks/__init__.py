"""Checks of streams, evaluated from logs and tables without a JVM."""
