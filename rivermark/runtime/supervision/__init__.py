"""Runs of streams: scheduling, leases, heartbeats, progress."""
