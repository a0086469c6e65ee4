"""Admission repeated from raw, as a rehearsal."""
