"""Alerts on temperature readings, by rules that keep state and set timers."""
