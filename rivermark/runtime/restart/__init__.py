"""Which groups of streams are started again, and when."""
