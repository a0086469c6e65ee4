"""Checkpoints: generations, positions, watermarks, stored state."""
