"""Generators of events, drips and the scenes of the demo."""
