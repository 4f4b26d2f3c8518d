"""Carries changes to the nodes: steps, journal, locks, waves, rollback."""
