"""Topics of Apache Kafka."""
