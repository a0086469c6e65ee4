"""Taxi rides, fares and trips: events, enrichment, analytics, and the world that makes them."""
