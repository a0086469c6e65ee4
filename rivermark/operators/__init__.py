"""Operators in event time that are the same on a stream and on a table."""
