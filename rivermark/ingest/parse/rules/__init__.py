"""Rules evaluated on typed columns, all rows at once; Spark decides what is in doubt."""
