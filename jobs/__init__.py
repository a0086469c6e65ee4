"""Jobs of this project's own, beside those that `rivermark.dagster` makes of its streams."""
