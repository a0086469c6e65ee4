"""A parsed batch: in memory, or in files that tasks of executors have written."""
