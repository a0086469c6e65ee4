"""Runs a process over a bucket of keys, without a JVM."""
