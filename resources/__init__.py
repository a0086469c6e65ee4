"""What the runs of this project may touch, beside what `rivermark.dagster` gives them."""
