"""Closed days computed again: rehearsed, compared, replaced, undone, or tried another way."""
