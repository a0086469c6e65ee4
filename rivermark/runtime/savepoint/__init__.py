"""Savepoints: a stream at one batch, from which it goes on, here, elsewhere or beside itself."""
