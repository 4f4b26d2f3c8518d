"""Simulated switches, one module per platform, written from vendor documentation only."""
