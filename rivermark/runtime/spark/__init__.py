"""Every access of the runtime to private parts of Spark and its JVM (see `version`)."""
