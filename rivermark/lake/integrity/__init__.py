"""Integrity of a table's files: its log, its table checkpoints, its data files."""
