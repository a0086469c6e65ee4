"""The beginning of a project of one's own: a repository, streams proposed from samples."""
