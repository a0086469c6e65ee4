"""The sources of records: one module each, behind `rivermark.model.source`."""
