"""Erasure of a person's rows: whose they are, where they are, taken out, and on record."""
