"""Landing files: written so that a reader meets whole files only, in the order of landing."""
