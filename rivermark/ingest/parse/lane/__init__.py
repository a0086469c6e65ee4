"""Rows that are plainly well-formed, typed all at once; all others are left to the parser."""
