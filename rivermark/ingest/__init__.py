"""The door: every event is admitted, set aside with a reason, or kept as late. Nothing else."""
