"""The console: run, look at, recompute, pause and reset streams, without knowing any domain.

Deployments hand in their streams, commands and demo scenes through entry points.
"""
