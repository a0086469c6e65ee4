"""Pages that need nothing but themselves: one file, no network, drawn from values."""
