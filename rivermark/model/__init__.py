"""Declarations of streams, tables, sources and expectations."""
