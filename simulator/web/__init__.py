"""Page views of made-up visitors."""
