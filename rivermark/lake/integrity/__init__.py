"""Whether the files of a table are whole: its log, its table checkpoints, its data files."""
