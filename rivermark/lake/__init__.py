"""Delta tables: declared, created, appended once, replaced by day, read as they were."""
