"""Drift scans again and again: history, what changed, who is told, and metrics."""
