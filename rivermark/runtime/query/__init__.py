"""One running query of a stream, by kind of stream."""
