"""Metrics, health, alert rules and a board, for Prometheus and Grafana."""
