"""Claims about living streams, answered from logs and small reads, without an engine."""
