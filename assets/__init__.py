"""The tables of the platform, by domain."""
