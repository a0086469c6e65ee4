"""Files that land in a folder."""
