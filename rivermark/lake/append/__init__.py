"""An append to a Delta table: data files by any process, one log entry by the driver."""
