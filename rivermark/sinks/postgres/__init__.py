"""Rows in a table of PostgreSQL, each batch in one transaction with its identity."""
