"""Sources of ingests, and the protocol of one's own."""

from rivermark.ingest.source.delta_table import DeltaSource
from rivermark.ingest.source.files.source import FileSource
from rivermark.ingest.source.generator import ElementsSource, RateSource, SocketSource
from rivermark.ingest.source.kafka.formats import Avro, Protobuf
from rivermark.ingest.source.kafka.options import ConsumerGroup
from rivermark.ingest.source.kafka.source import KafkaSource
from rivermark.ingest.source.postgres import PostgresSource
from rivermark.ingest.source.python_data_source import PythonDataSource
from rivermark.model.source import Source, SourceReader
from rivermark.model.watermark import PerProducer

__all__ = [
    "Avro",
    "ConsumerGroup",
    "DeltaSource",
    "ElementsSource",
    "FileSource",
    "KafkaSource",
    "PerProducer",
    "PostgresSource",
    "Protobuf",
    "PythonDataSource",
    "RateSource",
    "SocketSource",
    "Source",
    "SourceReader",
]
