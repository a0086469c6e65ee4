"""Resources of runs: the settings and the Spark session."""
