"""Starting, watching and stopping streams, and what must survive the death of a process."""
