"""An append to a Delta table by this process: one data file, one log entry."""
