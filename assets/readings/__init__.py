"""Temperature readings: a live sensor stream and its generator, and recorded series."""
