"""A parsed batch: in the driver as Arrow, or on Spark."""
