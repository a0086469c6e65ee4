"""Ours and the peers in turn on the same files: `python -m bench peers`."""
