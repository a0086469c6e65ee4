"""Schemas of stored state, and taking over what an earlier one wrote."""
