"""One workload in one engine, each a process of its own: `python -m bench.peers.jobs.ENGINE`.

A job imports its engine and bench.peers.workloads, nothing else of this project (but ours).
"""
