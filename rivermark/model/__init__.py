"""What streams, tables, sources and expectations are declared with."""
