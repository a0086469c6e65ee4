"""Every access to private parts of Spark and its JVM."""
