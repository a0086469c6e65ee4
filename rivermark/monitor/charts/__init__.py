"""Charts as PNG files."""
