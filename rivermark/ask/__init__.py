"""Tables for people and programs that ask: without Spark, at any version, never written to."""
