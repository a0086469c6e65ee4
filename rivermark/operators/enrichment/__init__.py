"""Looking rows up in services outside of the lake, many at a time, on the executors."""
