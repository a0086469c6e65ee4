"""Whether days are complete."""
