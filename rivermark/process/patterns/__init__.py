"""Patterns of events (CEP): sequences with conditions, within a time, on keyed processes."""

from rivermark.process.patterns.match import Match
from rivermark.process.patterns.pattern import Pattern
from rivermark.process.patterns.process import PatternProcess

__all__ = ["Match", "Pattern", "PatternProcess"]
