"""Platforms: one module per switch OS, host OS, NIC family or service; found by name, no list to edit."""
