"""Declarations checked before any run: what they would fail with, found on empty tables."""

from rivermark.runtime.preflight.builds import EmptyInputs
from rivermark.runtime.preflight.faults import faults_of, faults_without_spark

__all__ = ["EmptyInputs", "faults_of", "faults_without_spark"]
